"""A file of a savepoint is damaged: a job that is to start from it fails with the file's name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from emberflow import StreamExecutionEnvironment
from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext
from emberflow.approvals.answering import give_answer, questions
from emberflow.errors import EmberflowError
from emberflow.testing import TestSource
from emberflow.testing.committed_files import literal_files, read_committed
from tests.support.recovery.damage_cases import DAMAGES, LOCAL, SAVEPOINT, Kind, strike, uncovered
from tests.support.recovery.desk_program import until

INPUT = [("tells", 1), ("asks", 2)]
EXPECTED = [("asks", 2, "approve"), ("tells", 1, "")]


async def act(event: InputEvent, ctx: RunnerContext) -> None:
    key, number = event.input
    answer = ""
    if key == "asks":
        number = await ctx.durable_execute_async(max, 0, number)
        answer = str(await ctx.ask_human("Pay?"))
    ctx.short_term_memory.set("seen", number)
    ctx.send_event(OutputEvent((key, number, answer)))


def start(folder: Path, backend: str, checkpoints: str, interval_ms: int, *, first: bool = False) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=str(folder / checkpoints), parallelism=1
    )
    env.enable_checkpointing(interval_ms)
    env.set_option("state_backend", backend)
    if not first:
        env.set_savepoint(folder / "savepoint")
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.add_source(TestSource(INPUT, bounded=False)).uid("in")
    agent = Agent("a").add_action("act", [InputEvent], act)
    out = agents.from_datastream(stream, lambda item: item[0]).apply(agent).to_datastream()
    out.sink_to(literal_files(folder / "output")).uid("out")
    return env.execute_async()


@pytest.fixture(scope="module", params=LOCAL)
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A job that was stopped while a call's answer was recorded and its output was staged."""
    backend = str(request.param).partition("-")[2]
    folder = tmp_path_factory.mktemp(backend) / "job"
    job = start(folder, backend, "checkpoints", 10**7, first=True)
    staged = ".emberflow/*/inprogress*/[0-9]*"
    home = folder / "checkpoints"
    until(lambda: bool(home.is_dir() and questions(home) and list((folder / "output").glob(staged))), job)
    job.savepoint(folder / "savepoint", stop=True)
    shutil.copytree(folder, folder.with_name("kept"))
    return backend, folder


def test_every_file_has_a_row_in_the_table(taken: tuple[str, Path]) -> None:
    _, folder = taken
    kept = folder.with_name("kept")
    assert uncovered(kept) == []
    for kind in SAVEPOINT:
        assert list(kept.glob(kind.pattern)), kind.file


def test_without_damage_it_continues(taken: tuple[str, Path]) -> None:
    backend, folder = taken
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    job = start(folder, backend, "later", 20)
    home = folder / "later"

    def is_done() -> bool:
        for question in questions(home) if home.is_dir() else ():
            give_answer(home, question.id, "approve")
        return len(read_committed(folder / "output")) >= len(EXPECTED)

    until(is_done, job)
    job.cancel()
    assert sorted(read_committed(folder / "output"), key=repr) == EXPECTED


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", SAVEPOINT, ids=lambda kind: kind.file)
def test_a_damaged_file(kind: Kind, damage: str, taken: tuple[str, Path]) -> None:
    backend, folder = taken
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    path = kind.newest(folder)
    strike(path, damage)
    left = path.read_bytes() if path.exists() else None
    before = read_committed(folder / "output")
    with pytest.raises(EmberflowError) as caught:
        start(folder, backend, "later", 20).get_job_execution_result().result()
    reported = str(caught.value)
    assert f"`{type(caught.value).__name__}`" == kind.outcomes[DAMAGES.index(damage)], reported
    assert str(path.relative_to(folder / "savepoint")) in reported
    assert str(folder / "savepoint") in reported
    assert "what to do: " in reported
    assert (path.read_bytes() if path.exists() else None) == left
    assert read_committed(folder / "output") == before, "nothing is committed from it"
