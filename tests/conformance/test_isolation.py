"""A record that was emitted does not change any more, whatever functions do to it or to their state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.streams import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from emberflow.testing import LOCAL_HOSTS, Crash, Host, TestSource, on_every_host


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
        records = env.from_collection([{"n": 10}, {"n": 20}])
        one = records.map(raised).map(lambda record: ("one", record["n"]))
        two = records.map(raised).map(raised).map(lambda record: ("two", record["n"]))
        return seen.union(rows, one, two)

    found = host.run(program)
    assert sorted(item for item in found if isinstance(item, int)) == [1, 3, 6]
    assert sorted(item for item in found if isinstance(item, list)) == [[1], [1, 2], [1, 2, 3]]
    pairs = sorted(item for item in found if isinstance(item, tuple))
    assert pairs == [
        ("one", 11), ("one", 21), ("row", 1), ("row", 2), ("row", 2), ("row", 3), ("row", 3), ("row", 4),
        ("two", 12), ("two", 22),
    ]  # fmt: skip


def lists(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([[1], [2], [3]]).key_by(lambda _: "k").reduce(appended)


@on_every_host
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
