"""A record that was emitted does not change any more, whatever functions do to it or to their state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import (
    LOCAL,
    LOCAL_2,
    LOCAL_HOSTS,
    SPARK,
    SPARK_BATCH,
    Crash,
    Host,
    TestSource,
    on_every_host,
)


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.entries: list[int] = []


class Total(KeyedProcessFunction[str, tuple[str, int], Any]):
    """Changes the object in its state, and emits it: bare, and inside a tuple."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor[dict[str, int]]("total"))
        self.account = runtime_context.get_state(ValueStateDescriptor[Account]("account"))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        total = self.total.value() or {"sum": 0}
        account = self.account.value() or Account(value[0])
        total["sum"] += value[1]
        account.entries.append(value[1])
        self.total.update(total)
        self.account.update(account)
        yield total
        total["sum"] += 0
        yield value[0], account


def appended(seen: list[int], value: list[int]) -> list[int]:
    seen += value
    return seen


def reused(value: tuple[str, int]) -> Iterator[dict[str, int]]:
    row: dict[str, int] = {}
    for number in range(2):
        row["n"] = value[1] + number
        yield row


class SameObject(MapFunction[tuple[str, int], dict[str, int]]):
    """Returns the same object for every record."""

    def __init__(self) -> None:
        self.row: dict[str, int] = {}

    def map(self, value: tuple[str, int]) -> dict[str, int]:
        self.row["n"] = value[1]
        return self.row


def raised(record: dict[str, int]) -> dict[str, int]:
    record["n"] += 1
    return record


SALES = [("a", 1), ("a", 2), ("a", 3)]


@on_every_host
def test_what_was_emitted_stays_as_it_was(host: Host) -> None:
    def program(env: StreamExecutionEnvironment) -> Any:
        sales = env.from_collection(SALES)
        totals = sales.key_by(lambda sale: sale[0]).process(Total())
        seen = totals.map(lambda item: item["sum"] if isinstance(item, dict) else list(item[1].entries))
        rows = sales.flat_map(reused).map(lambda row: ("row", row["n"]))
        same = sales.map(SameObject()).map(lambda row: ("same", row["n"]))
        records = env.from_collection([{"n": 10}, {"n": 20}])
        one = records.map(raised).map(lambda record: ("one", record["n"]))
        two = records.map(raised).map(raised).map(lambda record: ("two", record["n"]))
        return seen.union(rows, same, one, two)

    found = host.run(program)
    assert sorted(item for item in found if isinstance(item, int)) == [1, 3, 6]
    assert sorted(item for item in found if isinstance(item, list)) == [[1], [1, 2], [1, 2, 3]]
    pairs = sorted(item for item in found if isinstance(item, tuple))
    assert pairs == [
        ("one", 11), ("one", 21), ("row", 1), ("row", 2), ("row", 2), ("row", 3), ("row", 3), ("row", 4),
        ("same", 1), ("same", 2), ("same", 3),         ("two", 12), ("two", 22),
    ]  # fmt: skip


def shared(env: StreamExecutionEnvironment) -> Any:
    records = env.from_collection([{"n": 10}, {"n": 20}])
    one = records.map(raised).map(lambda record: ("one", record["n"]))
    two = records.map(raised).map(raised).map(lambda record: ("two", record["n"]))
    sales = env.from_collection(SALES).map(SameObject()).map(lambda row: ("same", row["n"]))
    timed = env.from_collection([("a", 1, [5])]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda item, _: item[1])
    )
    windowed = timed.key_by(lambda item: item[0]).window(SlidingEventTimeWindows.of(10, 5)).process(Grow())
    return one.union(two, sales, windowed)


class Grow(ProcessWindowFunction[Any, Any, str, Any]):
    """Changes its elements."""

    def process(self, key: str, context: Any, elements: Any) -> Iterator[Any]:
        for element in elements:
            element[2].append(6)
            yield "window", len(element[2])


@on_every_host(hosts=[LOCAL, SPARK_BATCH])
def test_reused_objects_are_not_copied(host: Host) -> None:
    kept = sorted(host.run(shared))
    reused = sorted(host.run(lambda env: shared(with_reuse(env))))
    ones = [("one", 11), ("one", 21)]
    assert kept == [
        *ones, ("same", 1), ("same", 2), ("same", 3), ("two", 12), ("two", 22), ("window", 2), ("window", 2)
    ]  # fmt: skip
    # Every function sees what the others did to the same objects.
    assert reused == [
        *ones, ("same", 3), ("same", 3), ("same", 3), ("two", 13), ("two", 23), ("window", 2), ("window", 3)
    ]  # fmt: skip


def with_reuse(env: StreamExecutionEnvironment) -> StreamExecutionEnvironment:
    env.get_config().enable_object_reuse()
    return env


class Cached(AsyncFunction[int, dict[str, int]]):
    """Keeps what it returned."""

    def __init__(self) -> None:
        self.row = {"n": 0}

    async def async_invoke(self, value: int) -> list[dict[str, int]]:
        return [self.row]


@on_every_host(hosts=[LOCAL, LOCAL_2, SPARK_BATCH])
def test_each_task_has_its_own_records_of_a_broadcast_and_of_a_cache(host: Host) -> None:
    def program(env: StreamExecutionEnvironment) -> Any:
        sent = env.from_collection([{"n": 1}]).broadcast().map(raised).set_parallelism(3)
        cached = AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Cached(), 10_000)
        return sent.union(cached.map(raised))

    found = sorted(record["n"] for record in host.run(program))
    assert found == [1, 1, 1, 2, 2, 2]


def lists(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([[1], [2], [3]]).key_by(lambda _: "k").reduce(appended)


@on_every_host(nightly=[SPARK])
def test_a_reduce_that_changes_its_argument(host: Host) -> None:
    found = host.run(lists)
    assert found[-1] == [1, 2, 3]
    # Only the final value in batch mode.
    assert found in ([[1], [1, 2], [1, 2, 3]], [[1, 2, 3]])


@on_every_host(hosts=LOCAL_HOSTS)
def test_records_that_were_changed_are_read_again_as_they_were(host: Host, tmp_path: Path) -> None:
    """Spark reads them in another process each time."""
    source = TestSource([{"n": 1}, {"n": 10}, Crash(), {"n": 100}])
    run = host.run_to_files(
        lambda env: env.add_source(source).map(raised).map(lambda record: record["n"]), tmp_path
    )
    assert run.starts == 2
    assert sorted(run.values) == [2, 11, 101]
