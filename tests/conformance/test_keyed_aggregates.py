"""B4: key_by, reduce, sum, min, max, min_by, max_by on tuples, dictionaries, objects and plain numbers."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from emberflow.streams import KeySelector, ReduceFunction
from emberflow.testing import Host, on_every_host, per_key


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
def test_reduce_emits_after_every_record(host: Host) -> None:
    records = [("a", 1), ("b", 5), ("a", 2), ("b", 5), ("a", 3)]
    for function in (Add(), lambda a, b: (a[0], a[1] + b[1])):
        out = host.run(
            lambda env, function=function: env.from_collection(records).key_by(first).reduce(function)
        )
        assert per_key(out) == {"a": [("a", 1), ("a", 3), ("a", 6)], "b": [("b", 5), ("b", 10)]}


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
@on_every_host
def test_running_aggregates_over_tuples(host: Host, name: str, expected: list[Any]) -> None:
    out = host.run(lambda env: getattr(env.from_collection(TUPLES).key_by(first), name)(1))
    assert out == expected


@on_every_host
def test_aggregates_over_dictionaries_objects_and_named_tuples(host: Host) -> None:
    dictionaries = [{"k": "a", "n": 1}, {"k": "a", "n": 4}]
    out = host.run(lambda env: env.from_collection(dictionaries).key_by(lambda v: v["k"]).sum("n"))
    assert out == [{"k": "a", "n": 1}, {"k": "a", "n": 5}]
    readings = [Reading("s", 2.0, "x"), Reading("s", 1.5, "y")]
    out = host.run(lambda env: env.from_collection(readings).key_by(BySensor()).min("value"))
    assert out == [Reading("s", 2.0, "x"), Reading("s", 1.5, "x")]
    out = host.run(lambda env: env.from_collection(readings).key_by(BySensor()).min_by("value"))
    assert out == readings
    points = [Point("a", 1, 2), Point("a", 3, 4)]
    out = host.run(lambda env: env.from_collection(points).key_by(first).max("x"))
    assert out == [Point("a", 1, 2), Point("a", 3, 2)]


@on_every_host
def test_aggregates_over_plain_numbers(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([1, 2, 3]).key_by(lambda n: 0).sum())
    assert out == [1, 3, 6]


@on_every_host
def test_aggregates_leave_their_input_alone(host: Host) -> None:
    records = [{"k": "a", "n": 1}, {"k": "a", "n": 4}]

    def build(env: Any) -> Any:
        stream = env.from_collection(records)
        summed = stream.key_by(lambda v: v["k"]).sum("n").map(lambda v: ("sum", v["n"]))
        return summed.union(stream.map(lambda v: ("raw", v["n"])))

    assert per_key(host.run(build)) == {"sum": [("sum", 1), ("sum", 5)], "raw": [("raw", 1), ("raw", 4)]}


@on_every_host
def test_keys_of_many_types(host: Host) -> None:
    keys = ["a", 1, 2.5, None, b"b", ("t", 1), frozenset({1, 2}), True, -7, 10**30, "ü", ""]
    out = host.run(
        lambda env: env.from_collection([(key, 1) for key in keys for _ in range(2)]).key_by(first).sum(1)
    )
    # 1 and True are one key, as in a Python dictionary.
    totals = {key: found[-1][1] for key, found in per_key(out).items()}
    assert totals == {key: 4 if key == 1 else 2 for key in keys}


@on_every_host
def test_order_within_a_key_is_kept(host: Host) -> None:
    records = [(f"k{i % 13}", i) for i in range(3000)]
    out = host.run(lambda env: env.from_collection(records).key_by(first).map(lambda v: v))
    assert per_key(out) == per_key(records)
