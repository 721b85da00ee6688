"""Programs written for PyFlink, run unchanged: what they print is what the real PyFlink printed.

`record.py` recorded it with PyFlink 2.3.0. Lines are compared in order where Flink guarantees one (a single task and a single
print), otherwise as a multiset: several sinks, keys and firings of windows have no order among each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.testing.spark_session import shared_session, spark_missing

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.py"))
ORDERED = {
    "word_count",
    "value_state",
    "state_kinds",
    "collect",
    "metrics",
    "refusals",
    "time_values",
    "configuration",
}
# They build an environment to look at it and execute nothing, which the command line remarks on.
WITHOUT_A_JOB = {"configuration", "execution_plan", "refusals"}
# On Spark every program takes some ten seconds: one for each theme by day, the others at night.
BY_DAY_ON_SPARK = {"word_count", "state_kinds", "tumbling_windows"}

ON_SPARK_DIFFERENT = {
    "state_ttl": "B8: processing time stands still within a micro-batch, and all records are in one"
}


@pytest.fixture(autouse=True)
def _nothing_else_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("EMBERFLOW_ENGINE", "EMBERFLOW_PARALLELISM", "EMBERFLOW_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return iter(())


def check(program: str, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        ["run", "--as", "pyflink", str(HERE / "programs" / f"{program}.py"), "--engine", engine, "--quiet"]
    )
    printed = capsys.readouterr()
    assert code == (ExitCode.BAD_PROGRAM if program in WITHOUT_A_JOB else ExitCode.OK), printed.err
    expected = (HERE / "expected" / f"{program}.txt").read_text(encoding="utf-8").splitlines()
    found = printed.out.splitlines()
    if program not in ORDERED or engine == "spark":
        expected, found = sorted(expected), sorted(found)
    assert found == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_on_local(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(program, "local", capsys)


@pytest.mark.spark
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            name,
            marks=[
                *([] if name in BY_DAY_ON_SPARK else [pytest.mark.nightly]),
                *(
                    [pytest.mark.xfail(strict=True, reason=ON_SPARK_DIFFERENT[name])]
                    if name in ON_SPARK_DIFFERENT
                    else []
                ),
                *([pytest.mark.skip(reason=f"B1: {spark_missing()}")] if spark_missing() else []),
            ],
        )
        for name in PROGRAMS
        if name not in WITHOUT_A_JOB | {"time_values"}
    ],
)
def test_on_spark(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    shared_session()
    check(program, "spark", capsys)


def test_every_program_was_recorded() -> None:
    recorded = {path.stem for path in (HERE / "expected").glob("*.txt")} - {"options"}
    assert recorded == set(PROGRAMS)
