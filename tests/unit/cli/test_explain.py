from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main

EXPLAINS = """
import os
from emberflow.plan.explain_mode import Explained
raise Explained("plan as " + os.environ["EMBERFLOW_EXPLAIN"])
"""


@pytest.mark.parametrize("form", ["text", "mermaid", "json"])
def test_prints_the_plan_in_the_requested_format(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(EXPLAINS)
    assert main(["explain", str(program), "--format", form]) == ExitCode.OK
    assert capsys.readouterr().out == f"plan as {form}\n"


def test_a_program_without_a_job_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('hello')\n")
    assert main(["explain", str(program)]) == ExitCode.BAD_PROGRAM
    assert "without calling execute()" in capsys.readouterr().err
