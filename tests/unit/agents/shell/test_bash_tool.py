"""What allowed command lines do and return (A23)."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents.shell.bash_tool import BashTool
from emberflow.agents.shell.shell_run import ShellLimits
from emberflow.errors import InvalidAgent, InvalidArgument
from tests.support.waiting import until

COMMANDS = ["cat", "echo", "false", "head", "ls", "mkdir", "pwd", "sh", "sleep", "sort", "true", "wc", "yes"]
PATIENT = 600.0


def run(command: str, cwd: str | None = None, tool: BashTool | None = None) -> Any:
    made = tool or BashTool(COMMANDS)
    return asyncio.run(made.call(command=command, timeout=PATIENT, cwd=cwd))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo a 'b  c'", "a b  c"),
        ("echo b; echo a", "b\na"),
        ("echo -e 'b\\na' | sort | head -1", "a"),
        ("yes | head -2 | wc -l", "2"),
        ("true && echo yes || echo no", "yes"),
        ("false && echo yes || echo no", "no"),
        ("false || false || echo third", "third"),
        ("true || echo never && echo after", "after"),
        ("false | true && echo 'the last one counts'", "the last one counts"),
        ("true", "Success"),
        ("echo a > f; echo b >> f; cat < f", "a\nb"),
        ("echo long > f; echo s > f; cat f", "s"),
        ("mkdir d && echo a > d/f && cat d/../d/f", "a"),
        ("cat nothing 2> err || wc -l < err", "1"),
        ("cat nothing 2>&1 | wc -l", "1"),
        ("sh -c 'echo out; echo err >&2' 2>&1 >/dev/null", "err"),
        ("sh -c 'echo out; echo err >&2' >/dev/null 2>&1", "Success"),
        ("cat", "Success"),
        ("cat < /dev/null", "Success"),
        ("echo 'a\nb' | wc -l", "2"),
    ],
)
def test_command_lines(line: str, said: str) -> None:
    assert run(line) == said


def test_errors_are_told() -> None:
    assert run("cat nothing") == "Error (exit code 1): cat: nothing: No such file or directory"
    assert run("echo partly; sh -c 'exit 7'") == "Error (exit code 7)\npartly"
    assert run("sh -c 'kill -9 $$'") == "Error (exit code 137)"


def test_every_call_has_a_directory_of_its_own() -> None:
    first = run("echo a > f; pwd")
    assert run("ls") == "Success", "nothing is left of the first call"
    assert not Path(first).exists()
    assert run("mkdir -p a/b && sh -c 'chmod 000 a/b' && pwd").startswith("/")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "skill" / "scripts"
    folder.mkdir(parents=True)
    program = folder / "shout.sh"
    program.write_text('#!/bin/sh\necho "$1" loud; cat data.txt 2>/dev/null; true\n')
    program.chmod(0o755)
    (folder / "plain.py").write_text("print(1)")
    (folder / "data.txt").write_text("data")
    unmarked = folder / "unmarked"
    unmarked.write_text("echo hello")
    unmarked.chmod(0o755)
    return folder


def test_programs_of_allowed_directories(scripts: Path) -> None:
    tool = BashTool(["echo", "wc"], [scripts.parent])
    assert run(f"{scripts}/shout.sh hello", tool=tool) == "hello loud"
    assert run("./shout.sh hello", str(scripts), tool) == "hello loud\ndata"
    assert run("scripts/shout.sh hello | wc -l", str(scripts.parent), tool) == "1"
    assert run("wc -c < data.txt", str(scripts), tool) == "4"
    assert "is not executable" in run("./plain.py", str(scripts), tool)
    assert "there is no program" in run("./nothing", str(scripts), tool)
    assert "no '#!' line" in run("./unmarked", str(scripts), tool)
    assert "not allowed" in run("shout.sh", str(scripts), tool)
    assert "working directory '/' is not allowed" in run("echo a", "/", tool)


def test_limits() -> None:
    slow = BashTool(COMMANDS, limits=ShellLimits(timeout_s=0.3))
    assert run("echo a; sleep 600", tool=slow) == "Error: the command timed out after 0.3 seconds\na"
    loud = BashTool(COMMANDS, limits=ShellLimits(timeout_s=PATIENT, max_output_bytes=10))
    assert (
        run("yes", tool=loud)
        == "Error: the command was stopped: it wrote more than 10 bytes\n" + "y\n" * 4 + "y"
    )
    small = BashTool(COMMANDS, limits=ShellLimits(timeout_s=PATIENT, max_file_bytes=100))
    assert "exit code 153" in run("yes > f", tool=small)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_timeouts_that_cannot_be(timeout: float) -> None:
    assert "must be a positive number" in asyncio.run(
        BashTool(COMMANDS).call(command="true", timeout=timeout)
    )


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="needs 'command'"):
        asyncio.run(BashTool(COMMANDS).call({}))
    with pytest.raises(InvalidArgument, match="unexpected property 'allowed_commands'"):
        asyncio.run(BashTool(COMMANDS).call({"command": "id", "allowed_commands": ["id"]}))


def test_what_is_allowed_is_described_to_the_model() -> None:
    metadata = BashTool(["bc", "echo"], ["/opt/scripts"]).metadata
    assert "Allowed commands: bc, echo; programs below: /opt/scripts" in metadata.description
    assert set(metadata.args_schema["properties"]) == {"command", "timeout", "cwd"}
    assert metadata.args_schema["required"] == ["command"]


@pytest.mark.parametrize("entry", ["", "rm -rf", "./x", "bin/x", 5])
def test_entries_that_cannot_be(entry: Any) -> None:
    with pytest.raises(InvalidAgent, match="allowed_commands contains"):
        BashTool([entry])


def test_lists_are_lists() -> None:
    with pytest.raises(InvalidAgent, match="allowed_commands must be a list"):
        BashTool("bc")


def test_an_absolute_path_allows_only_that_program() -> None:
    echo = shutil.which("echo") or ""
    tool = BashTool([echo])
    assert run(f"{echo} a", tool=tool) == "a"
    assert "not allowed" in run("echo a", tool=tool)


def test_a_cancelled_call_ends_its_commands(tmp_path: Path) -> None:
    sign = tmp_path / "started"
    ended = tmp_path / "ended"

    async def cancel() -> None:
        tool = BashTool(["sh"])
        call = asyncio.ensure_future(
            tool.call(command=f"sh -c 'touch {sign}; sleep 600; touch {ended}'", timeout=PATIENT)
        )
        await asyncio.to_thread(until, sign.exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert not ended.exists()


def test_calls_run_side_by_side() -> None:
    async def several() -> list[Any]:
        tool = BashTool(COMMANDS)
        return await asyncio.gather(
            *(tool.call(command=f"echo {n} > f; cat f", timeout=PATIENT) for n in range(8))
        )

    assert asyncio.run(several()) == [str(n) for n in range(8)]
