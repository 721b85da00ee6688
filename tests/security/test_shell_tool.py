"""Attacks by whoever controls the command line of the shell tool: a model, or the text that it reads (A23)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from emberflow.agents.shell.bash_tool import BashTool
from emberflow.agents.shell.shell_policy import search_path
from emberflow.agents.shell.shell_run import ShellLimits

PATIENT = 600.0


def run(command: str, tool: BashTool | None = None, cwd: str | None = None) -> str:
    made = tool or BashTool(["echo", "cat", "ln", "mkdir", "mkfifo"])
    said: Any = asyncio.run(made.call({"command": command, "timeout": PATIENT, "cwd": cwd}))
    return said


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A file that an attack would create."""
    return tmp_path / "trap"


@pytest.mark.parametrize(
    "line",
    [
        "echo a; touch TRAP",
        "echo a && touch TRAP",
        "echo a | touch TRAP",
        "echo a\ntouch TRAP",
        "echo a\rtouch TRAP",
        "echo a\x00; touch TRAP",
        "echo $(touch TRAP)",
        'echo "$(touch TRAP)"',
        "echo `touch TRAP`",
        'echo "`touch TRAP`"',
        "echo ${x:-$(touch TRAP)}",
        "echo $((x[$(touch TRAP)]))",
        "echo <(touch TRAP)",
        "echo > >(touch TRAP)",
        "(touch TRAP)",
        "{ touch TRAP; }",
        "echo a & touch TRAP",
        "eval touch TRAP",
        "exec touch TRAP",
        "command touch TRAP",
        "env touch TRAP",
        "/bin/sh -c 'touch TRAP'",
        "/usr/bin/touch TRAP",
        "../../../../../usr/bin/touch TRAP",
        "'touch' TRAP",
        "to\\uch TRAP",
        't""ouch TRAP',
        "if true; then touch TRAP; fi",
        "f() { touch TRAP; }; f",
        "echo a > TRAP",
        "echo a >> TRAP",
        "echo a 2> TRAP",
        "echo a > '../../TRAP'",
        "echo a > x/../../../../../../../../..TRAP",
        "cat << EOF > TRAP\nx\nEOF",
        "IFS=x echo; touch TRAP",
        "alias echo=touch; echo TRAP",
        "PATH=/tmp echo",
        "LD_PRELOAD=/tmp/x.so echo",
        "\uff45\uff43\uff48\uff4f a; touch TRAP",
        "echo a \u037e touch TRAP; touch TRAP",
        "ec\u200bho TRAP",
        "echo 'a' ' ; touch TRAP",
        'echo "a\\"; touch TRAP',
        "echo a #\ntouch TRAP",
        "touch\tTRAP",
        "\\\ntouch TRAP",
    ],
)
def test_nothing_but_allowed_commands_runs(line: str, trap: Path) -> None:
    """Nothing of a refused line runs, not even its allowed part."""
    said = run(line.replace("TRAP", str(trap)))
    assert said.startswith("Command rejected: "), said
    assert not trap.exists()


@pytest.mark.parametrize(
    "line", ["echo '; touch TRAP'", "echo a';'touch TRAP", 'echo "| touch TRAP"', "echo \\; touch TRAP"]
)
def test_quoted_operators_are_text(line: str, trap: Path) -> None:
    assert "touch" in run(line.replace("TRAP", str(trap)))
    assert not trap.exists()


def test_a_program_of_an_allowed_name_elsewhere(tmp_path: Path) -> None:
    fake = tmp_path / "echo"
    fake.write_text("#!/bin/sh\nprintf stolen")
    fake.chmod(0o755)
    assert "is not allowed" in run(f"{fake} a")
    assert "is not allowed" in run("./echo a", BashTool(["echo", "cat"]))


def test_directories_of_path_that_others_could_write(tmp_path: Path) -> None:
    shared, own, link = tmp_path / "shared", tmp_path / "own", tmp_path / "link"
    shared.mkdir()
    own.mkdir()
    shared.chmod(0o777)
    link.symlink_to(shared)
    given = os.pathsep.join(map(str, ["", ".", "bin", shared, link, own, tmp_path / "none", own]))
    assert search_path(given) == str(own)


def test_links_do_not_lead_out_of_script_directories(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "sh").symlink_to("/bin/sh")
    (allowed / "bin").symlink_to("/bin")
    (tmp_path / "allowed-not").mkdir()
    beside = tmp_path / "allowed-not" / "x"
    beside.write_text("#!/bin/sh\necho stolen")
    beside.chmod(0o755)
    tool = BashTool(["echo"], [allowed])
    for name in (
        f"{allowed}/sh",
        f"{allowed}/bin/sh",
        f"{allowed}/../allowed-not/x",
        str(beside),
        f"{allowed}/../../../bin/sh",
    ):
        assert "is not allowed" in run(f"{name} -c 'echo stolen'", tool)
    assert "working directory" in run("echo a", tool, str(allowed / "bin"))
    assert "working directory" in run("echo a", tool, f"{allowed}/..")


def test_the_scratch_directory_holds_no_programs(tmp_path: Path) -> None:
    writer = tmp_path / "scripts" / "write.sh"
    writer.parent.mkdir()
    writer.write_text("#!/bin/sh\nprintf '#!/bin/sh\\necho stolen' > ls; chmod 755 ls; cp ls echo")
    writer.chmod(0o755)
    # Even if the directory of scripts contains all scratch directories.
    for allowed in (writer.parent, Path("/tmp"), Path("/")):
        tool = BashTool(["echo"], [allowed])
        assert "is not allowed" in run(f"{writer} && ./ls", tool)
        assert run("echo hello", tool) == "hello"


@pytest.mark.parametrize(
    "line",
    [
        "ln -s TRAP f; echo a > f",
        "ln -s TRAP f; echo a >> f",
        "ln -s FOLDER d; echo a > d/trap",
        "mkdir d; ln -s FOLDER d/e; echo a > d/e/trap",
    ],
)
def test_redirects_do_not_follow_links(line: str, trap: Path) -> None:
    said = run(line.replace("TRAP", str(trap)).replace("FOLDER", str(trap.parent)))
    assert "Error" in said
    assert not trap.exists()


def test_redirects_do_not_change_files_elsewhere(trap: Path) -> None:
    trap.write_text("precious")
    try:
        os.link(trap, trap.with_name("second"))
    except OSError:
        pytest.skip("A23: this file system has no second names")
    said = run(f"ln {trap} f && echo a > f")
    assert "Error" in said
    assert trap.read_text() == "precious"


def test_redirects_from_files_elsewhere(trap: Path) -> None:
    trap.write_text("secret")
    assert "is not allowed" in run(f"cat < {trap}")
    assert "secret" not in run(f"ln -s {trap} f; cat < f", BashTool(["cat", "ln"]))


def test_a_pipe_as_target_does_not_hang() -> None:
    assert "Error" in run("mkfifo f; echo a > f")


def test_the_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("LD_AUDIT", "")
    names = {line.partition("=")[0] for line in run("env", BashTool(["env"])).splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "TERM"}


def test_settings_of_programs_cannot_be_written_by_redirects() -> None:
    """A `.gitconfig` may name programs to run."""
    tool = BashTool(["echo", "sh"])
    assert run("echo '[core]' > .gitconfig && sh -c 'ls -A $HOME'", tool) == "Success"
    assert "is not allowed" in run("echo a > ../home/.gitconfig", tool)


def test_no_descriptors_are_inherited(tmp_path: Path) -> None:
    with open(tmp_path / "open", "w") as file:
        os.set_inheritable(file.fileno(), True)
        listed = run("ls /proc/self/fd", BashTool(["ls"]))
    # Three of its own, and the directory that it reads.
    assert len(listed.split()) <= 4, listed


ESCAPES = f"""#!{sys.executable}
import os, sys, time
# Leaves the process group and the session, twice removed from the supervisor.
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read()):
    time.sleep(0.01)
if len(sys.argv) > 2:
    time.sleep(600)
"""
BREEDS = f"""#!{sys.executable}
import os, sys, time
for _ in range(100):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in (("escape", ESCAPES), ("breed", BREEDS)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="A23: processes are adopted on Linux only")
@pytest.mark.parametrize("stays", ["", " stay"], ids=["ends", "times out"])
def test_nothing_outlives_its_call(stays: str, programs: Path) -> None:
    sign = programs.parent / "pid"
    limits = ShellLimits(timeout_s=20 if stays else PATIENT)
    said = run(f"{programs}/escape {sign}{stays}", BashTool([], [programs], limits=limits))
    assert ("timed out" in said) == bool(stays)
    assert not psutil.pid_exists(int(sign.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="A23: processes are counted on Linux only")
def test_programs_that_start_too_many_processes(programs: Path) -> None:
    before = {item.pid for item in psutil.Process().children(recursive=True)}
    limits = ShellLimits(timeout_s=PATIENT, max_processes=10)
    said = run(f"{programs}/breed", BashTool([], [programs], limits=limits))
    assert "it had more than 10 processes" in said
    assert {item.pid for item in psutil.Process().children(recursive=True)} <= before


def test_long_and_deep_input_is_refused_quickly() -> None:
    for line in ("a" * 10**6, "echo " + "'" * 10**6, "a|" * 10**5, "\\" * 10**6, "\n" * 10**6 + "touch x"):
        assert run(line).startswith("Command rejected: ")


def test_options_of_allowed_commands_are_not_restricted(trap: Path) -> None:
    """What docs/tools.md says about commands that start others."""
    run(f"env touch {trap}", BashTool(["env"]))
    assert trap.exists()
