"""B4: key_by, reduce, sum, min, max, min_by, max_by on tuples, dictionaries, objects and plain numbers.

Streaming hosts emit after every record, batch hosts once per key.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from emberflow.errors import StepFailed
from emberflow.streams import (
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
    RuntimeContext,
    TimestampAssigner,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, SPARK, SPARK_BATCH, Host, on_every_host, per_key


def first(value: Any) -> Any:
    return value[0]


Point = namedtuple("Point", ["key", "x", "y"])


@dataclass
class Reading:
    sensor: str
    value: float
    note: str = ""


class BySensor(KeySelector):
    def get_key(self, value: Reading) -> str:
        return value.sensor


class Add(ReduceFunction):
    def reduce(self, value1: tuple[str, int], value2: tuple[str, int]) -> tuple[str, int]:
        return value1[0], value1[1] + value2[1]


@on_every_host
def test_reduce_emits_after_every_record_or_once_per_key(host: Host) -> None:
    records = [("a", 1), ("b", 5), ("a", 2), ("b", 5), ("a", 3)]
    for function in (Add(), lambda a, b: (a[0], a[1] + b[1])):
        out = host.run(
            lambda env, function=function: env.from_collection(records).key_by(first).reduce(function)
        )
        assert per_key(out) == {
            "a": host.emitted([("a", 1), ("a", 3), ("a", 6)]),
            "b": host.emitted([("b", 5), ("b", 10)]),
        }


TUPLES = [("a", 3, "p"), ("a", 1, "q"), ("a", 3, "r"), ("a", 1, "s"), ("a", 5, "t")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [("a", 3, "p"), ("a", 4, "p"), ("a", 7, "p"), ("a", 8, "p"), ("a", 13, "p")]),
        ("min", [("a", 3, "p"), ("a", 1, "p"), ("a", 1, "p"), ("a", 1, "p"), ("a", 1, "p")]),
        ("max", [("a", 3, "p"), ("a", 3, "p"), ("a", 3, "p"), ("a", 3, "p"), ("a", 5, "p")]),
        ("min_by", [("a", 3, "p"), ("a", 1, "q"), ("a", 1, "q"), ("a", 1, "q"), ("a", 1, "q")]),
        ("max_by", [("a", 3, "p"), ("a", 3, "p"), ("a", 3, "p"), ("a", 3, "p"), ("a", 5, "t")]),
    ],
)
@on_every_host(nightly=[SPARK])
def test_running_aggregates_over_tuples(host: Host, name: str, expected: list[Any]) -> None:
    out = host.run(lambda env: getattr(env.from_collection(TUPLES).key_by(first), name)(1))
    assert out == host.emitted(expected)


@on_every_host(nightly=[SPARK])
def test_aggregates_over_dictionaries_objects_and_named_tuples(host: Host) -> None:
    dictionaries = [{"k": "a", "n": 1}, {"k": "a", "n": 4}]
    out = host.run(lambda env: env.from_collection(dictionaries).key_by(lambda v: v["k"]).sum("n"))
    assert out == host.emitted([{"k": "a", "n": 1}, {"k": "a", "n": 5}])
    readings = [Reading("s", 2.0, "x"), Reading("s", 1.5, "y")]
    out = host.run(lambda env: env.from_collection(readings).key_by(BySensor()).min("value"))
    assert out == host.emitted([Reading("s", 2.0, "x"), Reading("s", 1.5, "x")])
    out = host.run(lambda env: env.from_collection(readings).key_by(BySensor()).min_by("value"))
    assert out == host.emitted(readings)
    points = [Point("a", 1, 2), Point("a", 3, 4)]
    out = host.run(lambda env: env.from_collection(points).key_by(first).max("x"))
    assert out == host.emitted([Point("a", 1, 2), Point("a", 3, 2)])


@on_every_host(nightly=[SPARK])
def test_aggregates_over_plain_numbers(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([1, 2, 3]).key_by(lambda n: 0).sum())
    assert out == host.emitted([1, 3, 6])


@on_every_host(nightly=[SPARK])
def test_aggregates_do_not_modify_their_input(host: Host) -> None:
    records = [{"k": "a", "n": 1}, {"k": "a", "n": 4}]

    def build(env: Any) -> Any:
        stream = env.from_collection(records)
        summed = stream.key_by(lambda v: v["k"]).sum("n").map(lambda v: ("sum", v["n"]))
        return summed.union(stream.map(lambda v: ("raw", v["n"])))

    assert per_key(host.run(build)) == {
        "sum": host.emitted([("sum", 1), ("sum", 5)]),
        "raw": [("raw", 1), ("raw", 4)],
    }


@on_every_host(nightly=[SPARK])
def test_keys_of_many_types(host: Host) -> None:
    keys = ["a", 1, 2.5, None, b"b", ("t", 1), frozenset({1, 2}), True, -7, 10**30, "ü", ""]
    out = host.run(
        lambda env: env.from_collection([(key, 1) for key in keys for _ in range(2)]).key_by(first).sum(1)
    )
    # 1 and True are one key, as in a Python dictionary.
    totals = {key: found[-1][1] for key, found in per_key(out).items()}
    assert totals == {key: 4 if key == 1 else 2 for key in keys}


class CountLists(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        assert ctx.get_current_key() == value
        ctx.timer_service().register_event_time_timer(1_000)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield str(ctx.get_current_key()), self._count.value()


@on_every_host(nightly=[SPARK])
def test_lists_as_keys(host: Host) -> None:
    keys: list[Any] = [[], [1, "a"], [1, "b"], (1, "a"), [1, [2, None]], ("t", [1])]
    out = host.run(
        lambda env: env.from_collection([*keys, *keys]).key_by(lambda key: key).process(CountLists())
    )
    assert sorted(out) == sorted((str(key), 2) for key in keys)


@on_every_host
def test_order_within_a_key_is_kept(host: Host) -> None:
    records = [(f"k{i % 13}", i) for i in range(3000)]
    out = host.run(lambda env: env.from_collection(records).key_by(first).map(lambda v: v))
    assert per_key(out) == per_key(records)


class Stamped(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


@on_every_host(nightly=[SPARK])
def test_the_final_value_of_a_key_has_the_last_timestamp(host: Host) -> None:
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])

    def build(env: Any) -> Any:
        stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).assign_timestamps_and_watermarks(in_time)
        return stream.key_by(first).sum(1).key_by(first).process(Stamped())

    streamed = {"a": [(("a", 1), 1), (("a", 4), 3)], "b": [(("b", 2), 2)]}
    final = {"a": [(("a", 4), 2**63 - 1)], "b": [(("b", 2), 2**63 - 1)]}
    found = host.run(build)
    out = {key: [pair for pair in found if pair[0][0] == key] for key in "ab"}
    assert out == (streamed if host.streaming else final)


class WithLimit(ReduceFunction):
    """Adds until the limit, which `open()` knows; counts how often it was called, in keyed state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._limit = int(runtime_context.get_job_parameter("limit", "0") or 0)
        self._calls = runtime_context.get_state(ValueStateDescriptor("calls"))

    def reduce(self, value1: Any, value2: Any) -> Any:
        calls = (self._calls.value() or 0) + 1
        self._calls.update(calls)
        return value1[0], min(value1[1] + value2[1], self._limit), calls


class Initial(KeySelector):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._length = int(runtime_context.get_job_parameter("length", "0") or 0)

    def get_key(self, value: Any) -> str:
        return value[0][: self._length]


class InSeconds(TimestampAssigner):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._unit_ms = int(runtime_context.get_job_parameter("unit", "0") or 0)

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1] * self._unit_ms


@on_every_host(nightly=[SPARK_BATCH])
def test_open_is_called_on_reduce_functions_key_selectors_and_timestamp_assigners(host: Host) -> None:
    def build(env: Any) -> Any:
        env.set_job_parameters({"limit": "9", "length": "1", "unit": "1000"})
        in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(InSeconds())
        words = env.from_collection([("apple", 4), ("bean", 5), ("avocado", 6), ("anise", 7)])
        timed = words.assign_timestamps_and_watermarks(in_time)
        stamped = timed.key_by(Initial()).process(Stamped()).map(lambda pair: ("at", pair[1]))
        return timed.key_by(Initial()).reduce(WithLimit()).union(stamped)

    out = per_key(host.run(build))
    assert sorted(out["at"]) == [("at", 4000), ("at", 5000), ("at", 6000), ("at", 7000)]
    assert out["apple"] == host.emitted([("apple", 4), ("apple", 9, 1), ("apple", 9, 2)])
    assert out["bean"] == [("bean", 5)]


@on_every_host(nightly=[SPARK])
def test_strings_bytes_and_dates_are_compared_as_they_are(host: Host) -> None:
    def build(env: Any) -> Any:
        words = env.from_collection(["b", "a", "c"]).key_by(lambda word: 0)
        days = env.from_collection([date(2026, 1, 2), date(2026, 1, 1)]).key_by(lambda day: 0)
        largest, least = words.max_by(), words.min()
        return largest.map(lambda word: ("max_by", word)).union(
            least.map(lambda word: ("min", word)), days.min_by().map(lambda day: ("days", day.day))
        )

    found = per_key(host.run(build))
    assert found["max_by"] == [("max_by", word) for word in host.emitted(["b", "b", "c"])]
    assert found["min"] == [("min", word) for word in host.emitted(["b", "a", "a"])]
    assert found["days"] == [("days", day) for day in host.emitted([2, 1])]


def test_a_sum_needs_numbers() -> None:
    words = LOCAL.environment().from_collection(["b"]).key_by(lambda word: 0)
    with pytest.raises(StepFailed, match="the value 'b' has no field 0"):
        words.sum().execute_and_collect(limit=1)
