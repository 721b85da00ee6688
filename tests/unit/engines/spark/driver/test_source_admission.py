"""What a source may provide while agents have unfinished inputs: the rest stays in the source (A30, C9)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.durable.location import CallStoreLocation
from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.engines.spark.driver.offsets import OffsetPlanner
from emberflow.engines.spark.driver.source_admission import held_back_ms, limits_behind
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.streams import StreamExecutionEnvironment
from tests.support.spark_specs import spec_of


async def waits(event: InputEvent, ctx: RunnerContext) -> None:
    await asyncio.sleep(0)
    ctx.send_event(OutputEvent(event.input))


def at_once(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(event.input))


def spec(
    folder: Path, act: Any = waits, *, records: int = 100, most: int = 5, twice: bool = False
) -> JobSpec:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.MAX_IN_FLIGHT, most)
    stream = env.from_collection(list(range(records)))
    if twice:
        stream = stream.union(env.from_collection([1, 2]))
    agent = Agent("agent").add_action("act", [InputEvent], act)
    agents_env.from_datastream(stream, lambda value: value % 7).apply(agent).to_datastream().print()
    graph: JobGraph = env.job_graph("admission")
    return spec_of(
        graph,
        parallelism=2,
        max_records=1_000,
        client_dir=str(folder / "client"),
        calls=CallStoreLocation.in_directory(folder, "j", ""),
        ticking_stage=0,
        start_positions={stage.id: [[0, False]] for stage in graph.stages},
    )


def uid_of(job: JobSpec) -> str:
    ((uid, _),) = limits_behind(job, 0).items()
    return uid


def position(offset: dict[str, Any]) -> Any:
    return offset["channels"][0][0]


def test_agents_after_a_source_limit_it(tmp_path: Path) -> None:
    assert list(limits_behind(spec(tmp_path), 0).values()) == [10], "of both tasks"
    assert list(limits_behind(spec(tmp_path, twice=True), 0).values()) == [5], "shared by two sources"
    assert limits_behind(spec(tmp_path, at_once), 0) == {}, "nothing ever waits"


def test_unfinished_inputs_reduce_the_next_batch(tmp_path: Path) -> None:
    job = spec(tmp_path)
    uid = uid_of(job)
    planner = OffsetPlanner(dump_spec(job), 0)
    workers = StoredCallLog(FileCallStore(tmp_path / "calls"))
    workers.begin(0)
    first = planner.latest(planner.initial())
    assert position(first) == 10

    workers.park({f"{uid}/a-1/1/": 3, f"{uid}/b-1/1/": 3})
    workers.begin(1)
    second = planner.latest(first)
    assert position(second) == 12, "eight inputs are in state"

    workers.park({f"{uid}/c-1/1/": 1})
    workers.begin(2)
    third = planner.latest(second)
    assert position(third) == 12, "nothing is read"

    for run in "abc":
        workers.done(f"{uid}/{run}-1/1/")
    workers.begin(3)
    workers.close()
    assert position(planner.latest(third)) == 22


def test_a_planner_forgets_what_is_done(tmp_path: Path) -> None:
    """It follows the log as long as the job runs."""
    workers = StoredCallLog(FileCallStore(tmp_path / "calls"))
    reader = StoredCallLog(FileCallStore(tmp_path / "calls"))
    for epoch in range(50):
        workers.begin(epoch)
        action = f"agent/key{epoch}-1/1/"
        workers.write_now(CallRecord(f"{action}1", "f", "", "f()", RETURNED, "x" * 100))
        workers.done(action)
    workers.begin(50)
    workers.close()
    reader.follow()
    assert [reader.find(f"agent/key{epoch}-1/1/1") for epoch in range(50)] == [None] * 50


def test_an_input_within_all_limits_is_read_at_once(tmp_path: Path) -> None:
    planner = OffsetPlanner(dump_spec(spec(tmp_path, most=10_000)), 0)
    assert planner.latest(planner.initial())["channels"][0][:2] == [100, True]
    assert held_back_ms(str(tmp_path / "client")) == 0


def test_the_time_a_source_is_held_back_is_reported(tmp_path: Path) -> None:
    planner = OffsetPlanner(dump_spec(spec(tmp_path)), 0)
    offset = planner.initial()
    for _ in range(20):
        offset = planner.latest(offset)
    assert position(offset) == 100
    files = list((tmp_path / "client").iterdir())
    assert [path.name for path in files] == ["source-0.pressure"]
    assert held_back_ms(str(tmp_path / "client")) >= 0
    assert int(files[0].read_text()) == held_back_ms(str(tmp_path / "client"))
