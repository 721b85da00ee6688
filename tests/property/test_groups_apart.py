"""Key groups share a task, and a call may end while any of them is processed: what one has stored is never mistaken for
another one's (A13)."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.engines.spark.wire.packet_rows import PacketRow, group_ids, sink_dest
from emberflow.engines.spark.worker import worker_process
from emberflow.engines.spark.worker.packing import key_groups
from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.events.packets import Packet, encode_packet
from emberflow.streams import StreamExecutionEnvironment
from tests.support.micro_batches import Death, MicroBatches


async def slow(value: str) -> str:
    await asyncio.sleep(0.01)
    return value


class Keeps(Agent):
    @action(InputEvent)
    async def first(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, what = event.input
        await ctx.durable_execute_async(slow, what)
        if what == "keep":
            # More than is stored with its key.
            ctx.short_term_memory.set("mine", f"{key} " * 2_000)
            ctx.send_event_after(3_600_000, Event("later"))
        else:
            ctx.send_event(OutputEvent((key, what)))

    @action("later")
    def later(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, "later", ctx.short_term_memory.get("mine")[: len(ctx.key)])))


def graph(*, behind: bool = False) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.from_collection([("a", "x")])
    built = agents_env.from_datastream(stream, lambda value: value[0]).apply(Keeps()).to_datastream()
    if behind:
        built = built.key_by(lambda value: value[0]).reduce(lambda one, two: two)
    built.print()
    return env.job_graph()


def keys_by_group() -> list[list[str]]:
    """In the order in which timers of groups fire."""
    groups, ids = key_groups(4), group_ids(4, 1)
    found: dict[int, list[str]] = {}
    for number in range(200):
        found.setdefault(ids[groups[f"k{number}"]], []).append(f"k{number}")
    return [found[kg] for kg in sorted(found)]


@pytest.mark.parametrize("last", range(4))
def test_delayed_events_fired_at_the_end_find_the_memory_of_their_own_group(last: int) -> None:
    """The end of input waits for a call in every group. All calls end while the first group is processed; the delayed events
    that fire then start runs in all groups."""
    keys = keys_by_group()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = MicroBatches(graph(), Path(folder), monkeypatch)
        try:
            query.run([(item[0], "keep") for item in keys[: last + 1]], [], lambda: None)
            # Kept when all of them have been resumed.
            for _ in range(3):
                query.run([], [], lambda: None)
            query.run([(item[1], "x") for item in keys], [], lambda: None, ends=True)
            for _ in range(50):
                query.run([], [], lambda: None)
                if len(query.committed) >= 4 + last + 1:
                    break
        finally:
            query.end()
    later = sorted(value for value in query.committed if value[1] == "later")
    assert later == sorted((item[0], "later", item[0]) for item in keys[: last + 1])


class PassesElsewhere(MicroBatches):
    """Rows for a sink pass the level in the group that was being processed when a call of the previous level ended."""

    def _packets(self, inputs: list[Any], ends: bool) -> dict[int, list[PacketRow]]:
        found = super()._packets(inputs, ends)
        kg = group_ids(4, 1)[self._attempts % 4]
        packet = encode_packet(Packet(0, 0, 1, Batch([("passed",)])))
        return {kg: [PacketRow(kg, sink_dest(0), 1, MIN_WATERMARK, packet), *found.pop(kg, [])], **found}


def test_pass_through_rows_in_other_groups_do_not_count_as_different_input() -> None:
    (first, *_), *_ = keys_by_group()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = PassesElsewhere(graph(), Path(folder), monkeypatch)
        try:
            query.run([(first, "x")], [Death.BEFORE_SPARK_COMMITS] * 3, lambda: None)
        finally:
            query.end()
    assert query.committed.count(("passed",)) == 1


def test_a_hold_is_sent_again_when_the_same_process_repeats_a_batch() -> None:
    """Its state may come from a savepoint: downstream stages learn of it only in this way."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = MicroBatches(graph(behind=True), Path(folder), monkeypatch)
        try:
            reported: list[int] = []
            for batch in (0, 0, 1):
                _, stage = worker_process.open_stage(query._data, 1, 0)
                stage.exits.new_batch(0, 0)
                stage.begin_batch(batch)
                stage.hold(2, 5, 5)
                reported.append(len(stage.exits.take_rows()))
        finally:
            query.end()
    assert reported == [4, 4, 0]
