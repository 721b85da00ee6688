"""How calls of the shell tool end when commands make that difficult (A23)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from emberflow.agents.shell import scratch
from emberflow.agents.shell.bash_tool import BashTool
from emberflow.errors import ToolFailed

PATIENT = 600.0


def run(command: str, tool: BashTool) -> str:
    said: Any = asyncio.run(tool.call({"command": command, "timeout": PATIENT}))
    return said


def program(folder: Path, text: str) -> str:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture(autouse=True)
def place_of_scratch_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.mark.parametrize(
    "line",
    ["mkdir -p " + "a/" * 1_100, "mkdir -p a/b a/c; chmod 0 a/b a .", "mkdir a; ln -s / a/f; ln -s .. g"],
)
def test_scratch_directories_are_removed(line: str, place_of_scratch_directories: Path) -> None:
    """A thousand levels are more than Python's recursion limit."""
    assert run(line, BashTool(["mkdir", "chmod", "ln"])) == "Success"
    assert not list(place_of_scratch_directories.iterdir())


def test_a_scratch_directory_that_has_become_a_link_is_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    (precious / "closed").mkdir(parents=True)
    (precious / "closed").chmod(0o500)
    link.symlink_to(precious)
    scratch.remove(str(link))
    assert not os.path.lexists(link)
    assert (precious / "closed").stat().st_mode & 0o777 == 0o500


def test_long_names_in_messages_do_not_fill_pipes() -> None:
    """Nobody reads the pipe yet when the first program of a pipeline cannot be started."""
    unprintable = "\U000e0001" * 16_000
    assert run(f"echo 2>&1 > {unprintable} | wc -l", BashTool(["echo", "wc"])) == "1"


def test_commands_that_signal_their_group_do_not_reach_the_supervisor(tmp_path: Path) -> None:
    """What scripts do to clean up after themselves."""
    name = program(tmp_path, "trap 'kill 0' EXIT\necho hello")
    assert run(f"{name}; {name}", BashTool([], [tmp_path])) == "Error (exit code 143)\nhello\nhello"


@pytest.mark.skipif(sys.platform != "linux", reason="A23: the parent is known from /proc")
def test_commands_that_kill_the_supervisor_are_killed(tmp_path: Path) -> None:
    """And the call does not wait for its time limit."""
    sign = tmp_path / "pid"
    name = program(tmp_path, f"sleep 600 & echo $! > {sign}; kill -9 $PPID; sleep 600")
    with pytest.raises(ToolFailed, match="lost its supervisor"):
        run(name, BashTool([], [tmp_path]))
    left = int(sign.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(
    sys.platform != "linux", reason="A23: the parent and the environment are known from /proc"
)
def test_what_has_left_the_group_of_a_killed_supervisor_is_killed(tmp_path: Path) -> None:
    sign = tmp_path / "pid"
    outside = f"import os, time; open({str(sign)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    started = f'setsid {sys.executable} -c "{outside}" > /dev/null 2>&1 &'
    name = program(tmp_path, f"{started}\nuntil [ -s {sign} ]; do sleep 0.01; done\nkill -9 $PPID; sleep 600")
    with pytest.raises(ToolFailed, match="lost its supervisor"):
        run(name, BashTool([], [tmp_path]))
    left = int(sign.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_calls_that_are_cancelled_twice_still_clean_up(place_of_scratch_directories: Path) -> None:
    async def cancel_twice() -> None:
        tool = BashTool(["sleep"])
        call = asyncio.ensure_future(tool.call({"command": "sleep 600", "timeout": PATIENT}))
        while not any(  # noqa: ASYNC110 - another process is waited for
            item.name() == "sleep" for item in psutil.Process().children(recursive=True)
        ):
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_twice())
    assert not list(place_of_scratch_directories.iterdir())


def test_signals_of_a_terminal_have_their_usual_effect_on_commands(tmp_path: Path) -> None:
    name = program(tmp_path, "kill -INT $$; echo still there")
    assert run(name, BashTool([], [tmp_path])) == f"Error (exit code {128 + signal.SIGINT})"
