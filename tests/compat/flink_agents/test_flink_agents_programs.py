"""Programs written for Flink Agents, run unchanged against a server that speaks Ollama's interface.

They use its API as its quickstarts and the examples of its documentation do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.testing.spark_session import shared_session, spark_missing
from tests.compat.flink_agents.conversations import CONVERSATIONS
from tests.support.ollama_server import OllamaServer

PROGRAMS = Path(__file__).parent / "programs"
COMPANIONS = {"own_classes", "tickets", "triage_agent"}
BOUNDED = sorted(name for name, told in CONVERSATIONS.items() if not told.endless)
ENDLESS = sorted(name for name, told in CONVERSATIONS.items() if told.endless)
# On Spark every program takes some ten seconds.
BY_DAY_ON_SPARK = {"file_results", "own_resources"}
# Workers of a session that was started before the program do not have the secret that is written into it.
NEW_SESSION = {"injected_and_secret"}


@pytest.fixture(autouse=True)
def _nothing_else_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("EMBERFLOW_ENGINE", "EMBERFLOW_PARALLELISM", "EMBERFLOW_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    # What a secret that is written into a program leaves in the environment ends with the test.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    yield
    for name in COMPANIONS:
        sys.modules.pop(name, None)


def command(program: str, engine: str) -> list[str]:
    return ["run", "--as", "flink-agents", str(PROGRAMS / f"{program}.py"), "--engine", engine]


def check(
    program: str, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = CONVERSATIONS[program]
    with OllamaServer(list(told.rules)) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        code = main([*command(program, engine), "--quiet"])
        printed = capsys.readouterr()
        assert code == ExitCode.OK, printed.err
        assert said(printed.out.splitlines()) == sorted(told.prints)


def check_as_a_process(program: str, engine: str, *arguments: str) -> None:
    """Until all is printed; then the program is stopped."""
    told = CONVERSATIONS[program]
    with OllamaServer(list(told.rules)) as server:
        source = str(Path(__file__).parents[3] / "src")
        running = subprocess.Popen(
            [sys.executable, "-m", "emberflow.cli.main", *command(program, engine), *arguments, "--quiet"],
            env={**os.environ, "OLLAMA_HOST": server.url, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert running.stdout is not None
            assert said([running.stdout.readline() for _ in told.prints]) == sorted(told.prints)
        finally:
            running.terminate()
            running.communicate()
    if told.endless:
        assert running.returncode not in (ExitCode.OK, ExitCode.JOB_FAILED)


def said(lines: list[str]) -> list[str]:
    """Without the number of the task that printed, which like Flink's is there if there are several."""
    return sorted(re.sub(r"^\d+> ", "", line.rstrip("\n")) for line in lines)


def test_every_program_has_a_conversation() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.py")} - COMPANIONS == set(CONVERSATIONS)


@pytest.mark.filterwarnings("ignore:the argument 'Authorization':UserWarning")
@pytest.mark.parametrize("program", BOUNDED)
def test_on_local(program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, "local", capsys, monkeypatch)


@pytest.mark.parametrize("program", ENDLESS)
def test_as_a_process_on_local(program: str) -> None:
    check_as_a_process(program, "local")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:the argument 'Authorization':UserWarning")
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(name, marks=[] if name in BY_DAY_ON_SPARK else [pytest.mark.nightly])
        for name in BOUNDED
        if name not in NEW_SESSION
    ],
)
@pytest.mark.skipif(bool(spark_missing()), reason=f"A35: {spark_missing()}")
def test_on_spark(program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shared_session()
    check(program, "spark", capsys, monkeypatch)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [*ENDLESS, *(pytest.param(name, marks=pytest.mark.nightly) for name in sorted(NEW_SESSION))]
)
@pytest.mark.skipif(bool(spark_missing()), reason=f"A35: {spark_missing()}")
def test_as_a_process_on_spark(program: str) -> None:
    check_as_a_process(program, "spark", "--master", "local[2]")
