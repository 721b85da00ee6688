"""Keyed ValueState per record in one process, compared with bytewax's `stateful_map` on the same records."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.counting import RunningSum, key_of, record
from benchmarks.measurement import Measure, Options, Skipped, at_least
from emberflow.streams import DiscardingSink, StreamExecutionEnvironment

BATCH_RECORDS = 1_000


def run(options: Options) -> list[Measure]:
    records = [record(index) for index in range(options.pick(200_000, 1_000_000))]
    rounds = options.pick(3, 5)
    ours: list[float] = []
    theirs: list[float] = []
    bytewax = _bytewax()
    # In turns, so that other load on the machine affects both.
    for _ in range(rounds):
        ours.append(len(records) / emberflow_seconds(records))
        if not isinstance(bytewax, str):
            theirs.append(len(records) / bytewax_seconds(records))
    options.details.update(emberflow=ours, bytewax=theirs)
    rate = statistics.median(ours)
    if isinstance(bytewax, str):
        raise Skipped(f"{bytewax}; emberflow alone: {rate:,.0f} records/s")
    neighbour = statistics.median(theirs)
    return [
        Measure(name="against bytewax", value=rate / neighbour, unit="×", bar=at_least(1)),
        Measure(name="emberflow, local", value=rate, unit="records/s"),
        Measure(name="bytewax stateful_map", value=neighbour, unit="records/s"),
    ]


def emberflow_seconds(records: list[tuple[str, int]]) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection(records).key_by(key_of).process(RunningSum()).sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("keyed state")
    return time.perf_counter() - started


def _bytewax() -> Any:
    try:
        import bytewax
    except ImportError as error:
        return f"bytewax is not installed ({error}); it has no wheels for Python 3.13 and newer"
    return bytewax


def bytewax_seconds(records: list[tuple[str, int]]) -> float:
    """The records are already tuples of key and value, as bytewax requires."""
    from bytewax import operators
    from bytewax.dataflow import Dataflow
    from bytewax.outputs import DynamicSink, StatelessSinkPartition
    from bytewax.testing import TestingSource, run_main

    class Discard(StatelessSinkPartition[Any]):
        def write_batch(self, items: list[Any]) -> None:
            pass

    class DiscardSink(DynamicSink[Any]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Discard:
            return Discard()

    def add(total: int | None, value: int) -> tuple[int, int]:
        total = (total or 0) + value
        return total, total

    flow = Dataflow("keyed_state")
    stream = operators.input("records", flow, TestingSource(records, batch_size=BATCH_RECORDS))
    sums = operators.stateful_map("sum", stream, add)
    operators.output("discard", sums, DiscardSink())
    started = time.perf_counter()
    run_main(flow)
    return time.perf_counter() - started
