"""B5: which task of the next step a record goes to, and how many tasks a step has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, KeySelectorFailed
from emberflow.streams import (
    MapFunction,
    MemorySize,
    Partitioner,
    RuntimeContext,
    SlotSharingGroup,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import (
    LOCAL,
    LOCAL_SQLITE,
    SPARK,
    SPARK_BATCH,
    Host,
    TestSource,
    on_every_host,
    per_key,
    unordered,
)

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


class Task(MapFunction):
    """Tells in which task a record was, how many there are, and how many records this object has seen."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._task = runtime_context.get_index_of_this_subtask()
        self._of = runtime_context.get_number_of_parallel_subtasks()
        self._seen = 0

    def map(self, value: Any) -> Any:
        self._seen += 1
        return self._task, self._of, self._seen, value


class LastDigit(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return key % 10 % num_partitions


def first(value: Any) -> Any:
    return value[0]


PARTITIONERS: dict[str, Any] = {
    "rebalance": lambda stream: stream.rebalance(),
    "rescale": lambda stream: stream.rescale(),
    "shuffle": lambda stream: stream.shuffle(),
    "global": lambda stream: stream.global_(),
    "broadcast": lambda stream: stream.broadcast(),
    "custom": lambda stream: stream.partition_custom(LastDigit(), lambda number: number + 1),
    "by parallelism": lambda stream: stream,
    "twice": lambda stream: stream.global_().rebalance(),
}


@on_every_host(nightly=[SPARK_BATCH])
def test_every_partitioner_has_tasks_of_its_own(host: Host) -> None:
    """All of them in one program: three tasks each, and the object of each task counts what it has seen."""

    def build(env: Any) -> Any:
        numbers = env.from_collection(range(30))
        made = [
            partition(numbers).map(Task()).set_parallelism(3).map(lambda found, name=name: (name, *found))
            for name, partition in PARTITIONERS.items()
        ]
        stays = numbers.forward().map(Task()).map(lambda found: ("forward", *found))
        return stays.union(*made)

    out = per_key(host.run(build))
    everything = list(range(30))
    for name, found in out.items():
        wanted = everything * 3 if name == "broadcast" else everything
        assert unordered(value for *_, value in found) == unordered(wanted), name
        tasks = Counter(task for _, task, *_ in found)
        if name == "forward":
            assert set(tasks) == {0}
        else:
            assert {of for _, _, of, _, _ in found} == {3}, name
        for task in tasks:
            records = [(seen, value) for _, number, _, seen, value in found if number == task]
            # One object per task, and records of a channel stay in order.
            assert [seen for seen, _ in records] == list(range(1, len(records) + 1)), name
            assert [value for _, value in records] == sorted(value for _, value in records), name
    counts = {name: Counter(task for _, task, *_ in found) for name, found in out.items()}
    for name in ("rebalance", "rescale", "by parallelism", "twice"):
        assert counts[name] == {0: 10, 1: 10, 2: 10}, name
    assert counts["broadcast"] == {0: 30, 1: 30, 2: 30}
    assert counts["global"] == {0: 30}
    assert all(count > 0 for count in (counts["shuffle"][task] for task in range(3)))
    assert {value: task for _, task, _, _, value in out["custom"]} == {
        number: (number + 1) % 10 % 3 for number in everything
    }


@on_every_host(nightly=[LOCAL_SQLITE, SPARK_BATCH])
def test_event_time_behind_a_partitioner(host: Host) -> None:
    """Watermarks of all tasks are merged: windows behind a partitioner hold what they would without it, and a union of a
    partitioned and another stream keeps both."""
    records = [("a", 1), ("b", 2), ("a", 11), ("b", 12), ("a", 13), ("a", 27), ("b", 31)]

    def build(env: Any) -> Any:
        timed = env.from_source(TestSource(records, 2), MONOTONOUS, "timed")
        spread = timed.rebalance().map(lambda value: value).set_parallelism(3)
        back = (
            spread.key_by(first)
            .window(TumblingEventTimeWindows.of(10))
            .reduce(lambda one, two: (one[0], one[1] + two[1]))
        )
        both = timed.shuffle().union(timed).map(lambda value: ("both", value))
        return back.map(lambda value: ("window", value)).union(both)

    out = per_key(host.run(build))
    assert unordered(value for _, value in out["window"]) == unordered(
        [("a", 1), ("b", 2), ("a", 24), ("b", 12), ("a", 27), ("b", 31)]
    )
    assert unordered(value for _, value in out["both"]) == unordered(records * 2)


@on_every_host(nightly=[SPARK, SPARK_BATCH])
def test_a_sink_behind_a_partitioner(host: Host) -> None:
    """The partitioner may be the last thing before a sink; keys behind it replace it."""

    def build(env: Any) -> Any:
        numbers = env.from_collection(range(10)).rebalance()
        return numbers.key_by(lambda number: number % 2).map(lambda number: number).shuffle()

    assert unordered(host.run(build)) == list(range(10))


def test_a_partitioner_that_goes_wrong() -> None:
    def run(partitioner: Any, selector: Any = lambda number: number) -> None:
        LOCAL.run(
            lambda env: (
                env.from_collection([7]).partition_custom(partitioner, selector).map(str).set_parallelism(2)
            )
        )

    with pytest.raises(KeySelectorFailed, match="failed for the value 7") as raised:
        run(lambda key, tasks: tasks)
    assert "it returned 2, but the tasks are numbered from 0 to 1" in str(raised.value)
    with pytest.raises(KeySelectorFailed, match="not a whole number"):
        run(lambda key, tasks: None)
    with pytest.raises(KeySelectorFailed, match="ZeroDivisionError"):
        run(lambda key, tasks: key // 0)
    with pytest.raises(KeySelectorFailed, match="key selector before step 'map'"):
        run(lambda key, tasks: 0, lambda number: number.name)
    # As numpy's integers.
    run(lambda key, tasks: type("Int", (), {"__index__": lambda self: 1})())
    # A key that only the partitioner sees need not be hashable.
    run(lambda key, tasks: len(key), lambda number: [number])


def test_what_does_not_fit_together() -> None:
    env: Any = LOCAL.environment()
    numbers = env.from_collection([1])
    with pytest.raises(InvalidArgument, match=r"rebalance\(\) is none"):
        numbers.rebalance().name("numbers")
    with pytest.raises(InvalidArgument, match="partitioning of a keyed stream"):
        numbers.key_by(str).rebalance()
    with pytest.raises(InvalidArgument, match="cannot have a parallelism of 2"):
        numbers.map(str).force_non_parallel().set_parallelism(2)
    numbers.forward().map(str).name("three").set_parallelism(3).print()
    with pytest.raises(
        InvalidArgument, match=r"forward\(\) before step 'three'.*it is 1 before and 3 behind it"
    ):
        env.explain()


def test_more_tasks_than_key_groups() -> None:
    with pytest.raises(InvalidArgument, match="parallelism of 5, above the maximum of 4"):
        LOCAL.run(
            lambda env: (
                env.set_max_parallelism(4).from_collection([1]).rebalance().map(str).set_parallelism(5)
            )
        )
    with pytest.raises(InvalidArgument, match="above the maximum of 2"):
        LOCAL.run(lambda env: env.from_collection([1]).map(str).set_parallelism(3).set_max_parallelism(2))
    many = LOCAL.run(lambda env: env.from_sequence(1, 100).rebalance().map(Task()).set_parallelism(100))
    assert {task for task, *_ in many} == set(range(100))


def test_a_plan_shows_partitioners_and_tasks() -> None:
    env: Any = LOCAL.environment()
    group = SlotSharingGroup.builder("io").set_cpu_cores(1).set_managed_memory_mb(4).build()
    numbers = env.from_collection([1]).set_buffer_timeout(-1).partition_custom(LastDigit(), int)
    numbers.map(str).set_parallelism(3).slot_sharing_group(group).print()
    text = env.explain()
    assert "stage 1 (partitioned, 3 tasks) <- stage 0 by custom(LastDigit)" in text
    assert "slot_sharing_group=io (no effect)" in text
    assert 'by custom(LastDigit)"' in env.explain("mermaid")
    assert group.get_managed_memory() == MemorySize.of_mebi_bytes(4)
    assert MemorySize(2 * 1024**3).get_gibi_bytes() == 2


def test_a_partitioner_changes_no_uid() -> None:
    def uids(partition: Any) -> list[str]:
        env: Any = LOCAL.environment()
        partition(env.from_collection([1])).map(str).print()
        return [node.uid for node in env.job_graph().stream_graph.nodes]

    assert uids(lambda stream: stream.rebalance()) == uids(lambda stream: stream)
