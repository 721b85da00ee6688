from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.cli import doctor
from emberflow.cli.exit_codes import ExitCode, exit_code_of
from emberflow.cli.main import COMMANDS, main
from emberflow.errors import CheckpointUnusable, EmberflowError, JavaMissing, NotKeyed, StepFailed


def test_help_lists_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2].replace("_", "-")
        assert re.search(rf"\n    {name}\s", text)
    for code in ExitCode:
        assert f"\n  {code.value} " in text


@pytest.mark.parametrize("command", ["run", "explain", "doctor", "demo"])
def test_help_of_each_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"examples:\n  emberflow {command}" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run"], ["doctor", "--nonsense"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == ExitCode.BAD_PROGRAM
    assert "usage: emberflow" in capsys.readouterr().err


def test_arguments_of_the_program_without_double_dash_get_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "program.py", "--size", "3"])
    assert "arguments for the program itself go after --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu", "program.py"], "did you mean 'run'?"),
        (["savepoint", "inspct", "x"], "did you mean 'inspect'?"),
        (["run", "program.py", "--engine", "locl"], "did you mean 'local'?"),
        (["run", "program.py", "--paralelism", "2"], "did you mean '--parallelism'?"),
        (["events", "show", "logs", "--tre"], "did you mean '--tree'?"),
        (["checkpoints", "state", "--lst=3"], "did you mean '--last'?"),
    ],
)
def test_misspelled_names_get_a_suggestion(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == ExitCode.BAD_PROGRAM
    assert capsys.readouterr().err.endswith(f"; {said}\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotKeyed("x"), ExitCode.BAD_PROGRAM),
        (StepFailed("x"), ExitCode.JOB_FAILED),
        (CheckpointUnusable("x"), ExitCode.JOB_FAILED),
        (JavaMissing("x"), ExitCode.ENVIRONMENT),
    ],
)
def test_exit_code_follows_the_kind_of_error(error: EmberflowError, code: ExitCode) -> None:
    assert exit_code_of(error) == code


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(engine: str | None) -> doctor.Diagnosis:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "diagnose", interrupted)
    assert main(["doctor"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_python_m_emberflow_is_the_same_command(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(__name__, sys.argv[1:])\nsys.exit(7)\n")
    for arguments in (
        ["--version"],
        ["run"],
        ["run", str(program), "--engine", "local", "--", "--size", "3"],
    ):
        as_module, as_command = (
            subprocess.run([sys.executable, *start, *arguments], capture_output=True, text=True)
            for start in (
                ["-m", "emberflow"],
                ["-c", "import sys; from emberflow.cli.main import main; sys.exit(main())"],
            )
        )
        assert as_module.returncode == as_command.returncode
        assert (as_module.stdout, as_module.stderr) == (as_command.stdout, as_command.stderr)
