"""What appending to a list and reading one entry of a map cost with a thousand and with a million elements.

Every record appends one element and reads one entry. In one process the CPU time between the first and the last record
counts, with checkpoints in between on SQLite; on Spark it is the time of a micro-batch.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from typing import Any

from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from benchmarks.steered_source import FillThenTouch
from emberflow.streams import (
    DiscardingSink,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    RuntimeContext,
    StreamExecutionEnvironment,
)

FEW, MANY = 1_000, 1_000_000
TOUCHED = 50
WARM_UP = 5


class AppendAndRead(KeyedProcessFunction):
    """The first record of the key fills its list and its map."""

    def __init__(self, size: int) -> None:
        self._size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        self._list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self._map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self._pick = random.Random(7).randrange

    def process_element(self, value: Any, ctx: Any) -> None:
        if self._map.is_empty():
            self._list.add_all(range(self._size))
            self._map.put_all({number: -number for number in range(self._size)})
            return
        self._list.add(value[1])
        # As many different entries whatever the size, so that the processor's caches do not decide.
        wanted = self._pick(FEW) * (self._size // FEW)
        if self._map.get(wanted) != -wanted:
            raise AssertionError(f"the entry {wanted} is wrong")


class Stopwatch(AppendAndRead):
    """Also notes when records came. One process runs everything, so the class can hold the times."""

    seen: list[float] = []  # noqa: RUF012 - shared on purpose

    def process_element(self, value: Any, ctx: Any) -> None:
        super().process_element(value, ctx)
        self.seen.append(time.process_time())


def one_key(value: Any) -> int:
    return 0


def run(options: Options) -> list[Measure]:
    records, batches = options.pick(20_000, 100_000), WARM_UP + options.pick(8, 20)
    made: list[Measure] = []
    for backend in ("memory", "sqlite"):
        # In turns, so that a neighbour on the machine disturbs both.
        runs = [(local_us(backend, FEW, records), local_us(backend, MANY, records)) for _ in range(3)]
        few, many = (min(values) for values in zip(*runs, strict=True))
        made += figures(f"local, {backend}", few, many, "µs per record")
    with spark_session("large state") as session:
        spark_ms(session, FEW, WARM_UP + 1)  # a cold JVM would make the first case look slow
        first, large, again = (spark_ms(session, size, batches) for size in (FEW, MANY, FEW))
    made += figures("spark", min(first, again), large, "ms per batch")
    return made


def figures(where: str, few: float, many: float, unit: str) -> list[Measure]:
    return [
        Measure(name=f"{where}: a million against a thousand", value=many / few, unit="×", bar=at_most(1.5)),
        Measure(name=f"{where}: {FEW:,} elements", value=few, unit=unit),
        Measure(name=f"{where}: {MANY:,} elements", value=many, unit=unit),
    ]


def local_us(backend: str, size: int, records: int) -> float:
    Stopwatch.seen.clear()
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-") as folder:
        env = StreamExecutionEnvironment.get_execution_environment(
            {"state_backend": backend} if backend == "sqlite" else {},
            engine="local",
            checkpoint_dir=folder if backend == "sqlite" else None,
        )
        if backend == "sqlite":
            env.enable_checkpointing(100)
        stream = env.from_collection([(0, number) for number in range(records)])
        stream.key_by(one_key).process(Stopwatch(size)).sink_to(DiscardingSink())
        env.execute("large state")
    # Without the fill and the checkpoint that stores it.
    seen = Stopwatch.seen[len(Stopwatch.seen) // 4 :]
    return (seen[-1] - seen[0]) / (len(seen) - 1) * 1e6


def spark_ms(session: object, size: int, batches: int) -> float:
    env = environment(session)
    stream = env.from_source(FillThenTouch(2, TOUCHED, batches))
    stream.key_by(one_key).process(AppendAndRead(size)).sink_to(DiscardingSink())
    measured = env.execute("large state").metrics.batch_ms
    return statistics.median(measured[1 + WARM_UP : 1 + batches])
