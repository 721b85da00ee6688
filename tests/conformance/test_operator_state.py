"""B9: operator state of functions without keys: lists of a task, distributed again when the number of tasks changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotSupported, ProgramChanged
from emberflow.streams import (
    CheckpointedFunction,
    CollectSink,
    CoMapFunction,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    RuntimeContext,
)
from emberflow.testing import (
    LOCAL,
    LOCAL_SQLITE,
    SPARK,
    SPARK_BATCH,
    Crash,
    Cut,
    Host,
    Pause,
    TestSource,
    on_every_host,
    per_key,
)
from tests.support.waiting import until


class Pairs(FlatMapFunction, CheckpointedFunction):
    """Keeps every other record back until the next one comes."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self._state = context.get_operator_state_store().get_list_state(ListStateDescriptor("kept"))
        self._kept.extend(self._state.get())
        assert context.is_restored() or not self._kept

    def open(self, runtime_context: RuntimeContext) -> None:
        assert self._state is not None, "the state comes first"

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._state.update(self._kept)

    def flat_map(self, value: Any) -> Iterable[Any]:
        self._kept.append(value)
        while len(self._kept) >= 2:
            yield "pair", *self._kept[:2]
            del self._kept[:2]


class Counted(CoMapFunction, CheckpointedFunction):
    """Counts the records of both inputs in one list, and by input in broadcast state."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._state = store.get_list_state(ListStateDescriptor("count"))
        self._sides = store.get_broadcast_state(MapStateDescriptor("sides"))
        self._count = sum(self._state.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._state.clear()
        self._state.add(self._count)

    def map1(self, value: Any) -> Any:
        self._count += 1
        return "counted", self._count

    map2 = map1


RECORDS = list(range(11))


def with_crashes(host: Host, points: Iterable[int]) -> TestSource:
    items: list[Any] = []
    for index, record in enumerate(RECORDS):
        items += [Crash()] if index in points else []
        items.append(record)
        if index % 3 == 2:
            items += [Cut(), Pause(40)] if host.engine == "local" else [Cut()]
    return TestSource(items)


@on_every_host(nightly=[SPARK_BATCH])
def test_operator_state_survives_crashes(host: Host, tmp_path: Path) -> None:
    source = with_crashes(host, (4, 8))

    def build(env: Any) -> Any:
        stream = env.add_source(source)
        pairs = stream.flat_map(Pairs()).uid("pairs")
        counted = stream.connect(env.from_collection(["x", "y"])).map(Counted()).uid("counted")
        return pairs.union(counted)

    run = host.run_to_files(build, tmp_path)
    assert run.starts == 3
    out = per_key(run.values)
    assert out["pair"] == [("pair", 0, 1), ("pair", 2, 3), ("pair", 4, 5), ("pair", 6, 7), ("pair", 8, 9)]
    assert [count for _, count in out["counted"]] == list(range(1, len(RECORDS) + 3))


class Kept(MapFunction, CheckpointedFunction):
    """Every record is kept forever, in a list of its task and in a list that all tasks find whole."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._own = store.get_list_state(ListStateDescriptor("own"))
        self._all = store.get_union_list_state(ListStateDescriptor("all"))
        self._seen, self._known = list(self._own.get()), list(self._all.get())
        self._new: list[Any] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self._task = runtime_context.get_index_of_this_subtask()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._own.update(self._seen)
        self._all.update(self._seen)

    def map(self, value: Any) -> Any:
        self._seen.append(value)
        return self._task, value, list(self._seen), sorted(self._known)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 2)])
@on_every_host(hosts=[LOCAL, LOCAL_SQLITE], nightly=[SPARK])
def test_lists_are_distributed_again(host: Host, before: int, after: int, tmp_path: Path) -> None:
    crash = Crash()
    source = TestSource([*range(6), Cut(), Pause(60), crash, *range(6, 12)])

    def build(env: Any) -> Any:
        tasks = after if crash.happened else before
        return env.add_source(source).rebalance().map(Kept()).uid("kept").set_parallelism(tasks)

    run = host.run_to_files(build, tmp_path)
    assert run.starts == 2
    last = {task: (seen, known) for task, _, seen, known in run.values if _ >= 6}
    assert sorted(last) == list(range(after))
    # Every record is in the list of one task; at the restart, each task knew those of all.
    assert Counter(value for seen, _ in last.values() for value in seen) == Counter(range(12))
    assert all(known == list(range(6)) for _, known in last.values())
    sizes = [len(seen) for seen, _ in last.values()]
    assert max(sizes) - min(sizes) <= 1


class OneList(MapFunction, CheckpointedFunction):
    """Counts its records in a list of a given kind."""

    def __init__(self, *methods: str) -> None:
        self._methods = methods

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self._lists = [getattr(store, method)(ListStateDescriptor("seen")) for method in self._methods]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        pass

    def map(self, value: Any) -> Any:
        for found in self._lists:
            found.add(value)
        return value


LIST, UNION = "get_list_state", "get_union_list_state"


@pytest.mark.parametrize(("before", "after"), [(LIST, UNION), (UNION, LIST)])
@on_every_host(hosts=[LOCAL, LOCAL_SQLITE])
def test_a_list_does_not_become_a_union(host: Host, before: str, after: str, tmp_path: Path) -> None:
    """Its elements would be distributed otherwise than before: Flink refuses it, too."""
    crash = Crash()
    source = TestSource([1, 2, Cut(), Pause(60), crash, 3])

    def build(env: Any) -> Any:
        kind = after if crash.happened else before
        return env.add_source(source).map(OneList(kind)).uid("one").set_parallelism(2)

    with pytest.raises(ProgramChanged, match="'map' declares the operator state 'seen' as a"):
        host.run_to_files(build, tmp_path)


def test_a_name_belongs_to_one_list() -> None:
    with pytest.raises(InvalidArgument, match="'seen' as a list and as a union list"):
        LOCAL.run(lambda env: env.from_collection([1]).map(OneList(LIST, UNION)))


@on_every_host(hosts=[LOCAL, LOCAL_SQLITE, SPARK])
def test_operator_state_moves_with_a_savepoint(host: Host, tmp_path: Path) -> None:
    """From three local tasks to another number of them, on any engine."""
    out: list[Any] = []

    def start(env: Any, tasks: int, count: int, *, ends: bool) -> Any:
        stream = env.add_source(TestSource(list(range(count)), bounded=ends)).uid("numbers")
        pairs = stream.flat_map(Pairs()).uid("pairs").set_parallelism(tasks)
        pairs.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
        return env.execute_async("moved")

    job = start(LOCAL.environment(checkpoint_dir=tmp_path / "before"), 3, 9, ends=False)
    until(lambda: len(out) == 3)
    stored = job.savepoint(tmp_path / "savepoint", stop=True)
    env = host.environment(checkpoint_dir=tmp_path / "after").set_savepoint(stored)
    start(env, 1, 12, ends=True).get_job_execution_result().result()
    # Three records were kept back, one in each task.
    assert sorted(value for _, *pair in out for value in pair) == list(range(12))


def test_operator_state_belongs_to_steps_without_keys() -> None:
    env: Any = LOCAL.environment()
    env.from_collection([1]).key_by(str).flat_map(Pairs()).print()
    with pytest.raises(InvalidArgument, match="has operator state, which belongs to steps without keys"):
        env.explain()
    assert "stage 1 (partitioned) <- stage 0 by forward" in _plan()


def _plan() -> str:
    env: Any = LOCAL.environment()
    env.from_collection([1]).flat_map(Pairs()).print()
    return env.explain()


@on_every_host(hosts=[SPARK], nightly=[SPARK])
def test_union_lists_need_one_task_on_spark(host: Host) -> None:
    def build(env: Any, tasks: int) -> Any:
        return env.from_collection([1]).map(Kept()).set_parallelism(tasks).map(lambda found: found[1])

    with pytest.raises(NotSupported, match="has 2 tasks and a union list state 'all'"):
        host.run(lambda env: build(env, 2))
    assert host.run(lambda env: build(env, 1)) == [1]
