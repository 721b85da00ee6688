"""A map with a declared row type and a keyed sum, beside the same program on undeclared tuples, in one process."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.measurement import Measure, Options, at_most
from emberflow.streams import DiscardingSink, StreamExecutionEnvironment, Types

KEYS = 1_000
WORD = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.LONG()])
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def run(options: Options) -> list[Measure]:
    records = [(f"word-{index % KEYS}", index % 97) for index in range(options.pick(200_000, 1_000_000))]
    rounds = options.pick(3, 5)
    seconds: dict[str, list[float]] = {"undeclared": [], "rows": [], "tuples": []}
    # In turns, so that a neighbour on the machine disturbs all of them.
    for _ in range(rounds):
        seconds["undeclared"].append(undeclared(records))
        seconds["rows"].append(rows(records))
        seconds["tuples"].append(tuples(records))
    options.details.update(seconds)
    plain, typed, typed_tuples = (
        statistics.median(seconds[name]) for name in ("undeclared", "rows", "tuples")
    )
    return [
        Measure(name="rows against undeclared tuples", value=typed / plain, unit="×", bar=at_most(1.5)),
        Measure(name="declared tuples against undeclared ones", value=typed_tuples / plain, unit="×"),
        Measure(name="undeclared tuples", value=len(records) / plain, unit="records/s"),
        Measure(name="rows", value=len(records) / typed, unit="records/s"),
    ]


def doubled(record: Any) -> tuple[str, int]:
    return record[0], record[1] * 2


def undeclared(records: list[tuple[str, int]]) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    pairs = env.from_collection(records).map(doubled)
    return _seconds(env, pairs.key_by(lambda pair: pair[0]).sum(1))


def rows(records: list[tuple[str, int]]) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    words = env.from_collection(records).map(doubled, output_type=WORD)
    return _seconds(env, words.key_by(lambda row: row[0]).sum("n"))


def tuples(records: list[tuple[str, int]]) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    pairs = env.from_collection(records).map(doubled, output_type=PAIR)
    return _seconds(env, pairs.key_by(lambda pair: pair[0]).sum(1))


def _seconds(env: StreamExecutionEnvironment, stream: Any) -> float:
    stream.sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("declared types")
    return time.perf_counter() - started
