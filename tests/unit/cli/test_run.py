from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main

REPORT = """
import json, os, sys
import neighbour
print(json.dumps({
    "name": __name__, "file": __file__, "argv": sys.argv, "path": sys.path[0], "neighbour": neighbour.VALUE,
    "env": {k: v for k, v in os.environ.items() if k.startswith("EMBERFLOW_")},
}))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in os.environ if name.startswith("EMBERFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)

    def write(text: str, name: str = "program.py") -> str:
        (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_a_program_runs_as_python_would_run_it(
    write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = write(REPORT)
    before = (list(sys.argv), list(sys.path), dict(os.environ))
    options = [
        "--engine",
        "local",
        "--parallelism",
        "3",
        "--checkpoint-dir",
        "state",
        "--quiet",
        "--traceback",
    ]
    assert (
        main(["run", program, *options, "--master", "local[2]", "--", "--engine", "x", "--"]) == ExitCode.OK
    )
    seen = json.loads(capsys.readouterr().out)
    assert seen == {
        "name": "__main__",
        "file": program,
        "argv": [program, "--engine", "x", "--"],
        "path": str(tmp_path.resolve()),
        "neighbour": 7,
        "env": {
            "EMBERFLOW_ENGINE": "local",
            "EMBERFLOW_MASTER": "local[2]",
            "EMBERFLOW_PARALLELISM": "3",
            "EMBERFLOW_CHECKPOINT_DIR": "state",
            "EMBERFLOW_QUIET": "1",
            "EMBERFLOW_TRACEBACK": "1",
        },
    }
    assert (sys.argv, sys.path, dict(os.environ)) == before


def test_options_that_are_not_given_set_nothing(write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(REPORT)]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["env"] == {}


FAILS = """
from emberflow.errors import {kind}
def build():
    raise {kind}("step 'score' failed", way_out="repair it")
build()
"""


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("StepFailed", ExitCode.JOB_FAILED),
        ("NotKeyed", ExitCode.BAD_PROGRAM),
        ("JavaMissing", ExitCode.ENVIRONMENT),
    ],
)
def test_an_error_of_emberflow_is_its_message(
    kind: str, code: ExitCode, write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write(FAILS.format(kind=kind))]) == code
    error = capsys.readouterr().err
    assert error.startswith(kind)
    assert "what to do: repair it" in error
    assert "Traceback" not in error


def test_traceback_starts_at_the_program(write, capsys: pytest.CaptureFixture[str]) -> None:
    program = write(FAILS.format(kind="StepFailed"))
    assert main(["run", program, "--traceback"]) == ExitCode.JOB_FAILED
    error = capsys.readouterr().err
    assert error.startswith(f'Traceback (most recent call last):\n  File "{program}", line 5')
    assert "runpy" not in error


def test_any_other_error_has_its_traceback(write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("1 / 0\n")]) == ExitCode.JOB_FAILED
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert "runpy" not in error
    assert error.endswith("ZeroDivisionError: division by zero\n")


def test_a_syntax_error_is_a_bad_program(write, capsys: pytest.CaptureFixture[str]) -> None:
    program = write("def broken(:\n")
    assert main(["run", program]) == ExitCode.BAD_PROGRAM
    error = capsys.readouterr().err
    assert f'File "{program}", line 1' in error
    assert "Traceback" not in error


def test_exit_code_of_the_program_is_kept(write) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", write("import sys; sys.exit(7)\n")])
    assert stop.value.code == 7


def test_an_interrupted_program_is_130(write) -> None:
    assert main(["run", write("raise KeyboardInterrupt\n")]) == ExitCode.INTERRUPTED


def test_a_missing_program_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", str(tmp_path / "absent.py")]) == ExitCode.BAD_PROGRAM
    assert "there is no program" in capsys.readouterr().err
    assert main(["run", str(tmp_path)]) == ExitCode.BAD_PROGRAM
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_parallelism_is_a_positive_number(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", "program.py", f"--parallelism={number}"])
    assert stop.value.code == ExitCode.BAD_PROGRAM
    assert "is not a whole number of 1 or more" in capsys.readouterr().err


def test_functions_of_the_program_can_be_pickled(write) -> None:
    """They belong to `__main__`, so cloudpickle sends them by value."""
    program = write(
        "import cloudpickle\ndef double(x): return 2 * x\nprint(len(cloudpickle.dumps(double)) > 100)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "emberflow.cli.main", "run", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    "end", ["stream.print(); env.execute()", "assert stream.execute_and_collect(limit=1) == [1]"]
)
def test_a_program_that_executes_gets_no_warning(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "executes.py"
    program.write_text(
        "from emberflow.streams import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment(engine='local')\n"
        f"stream = env.from_collection([1])\n{end}\n"
    )
    assert main(["run", str(program)]) == 0
    assert "without executing" not in capsys.readouterr().err


def test_a_program_that_executes_nothing_gets_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "forgot.py"
    program.write_text(
        "from emberflow.streams import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment(engine='local')\n"
        "env.from_collection([1]).print()\n"
    )
    assert main(["run", str(program)]) == 2
    assert f"{program} ended without executing a job" in capsys.readouterr().err
