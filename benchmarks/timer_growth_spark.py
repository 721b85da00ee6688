"""Does a batch take longer because there are more timers that it does not touch?

Every key has three event-time timers, hours apart. Each record moves those of its key: it deletes three and registers
three. The same 5,000 keys are touched once per batch, with ten thousand and with a million keys in state.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from benchmarks.steered_source import FillThenTouch
from emberflow.streams import DiscardingSink, KeyedProcessFunction, RuntimeContext, ValueStateDescriptor

FEW, MANY, TOUCHED = 10_000, 1_000_000, 5_000
FILL_RECORDS = 100_000
WARM_UP = 5
HOUR_MS = 3_600_000


class MoveTimers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._due = runtime_context.get_state(ValueStateDescriptor("due"))

    def process_element(self, value: tuple[int, int], ctx: Any) -> None:
        key, position = value
        timers = ctx.timer_service()
        before = self._due.value()
        # Spread over an hour, and a little later each time.
        due = key * 7919 % HOUR_MS + position
        for hours in range(1, 4):
            if before is not None:
                timers.delete_event_time_timer(before + hours * HOUR_MS)
            timers.register_event_time_timer(due + hours * HOUR_MS)
        self._due.update(due)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        """Only at the end of the input, when all of them fire."""


def key_of(value: tuple[int, int]) -> int:
    return value[0]


def run(options: Options) -> list[Measure]:
    batches, many = WARM_UP + options.pick(10, 25), options.pick(200_000, MANY)
    with spark_session("timer growth") as session:
        batch_ms(session, FEW, WARM_UP)  # a cold JVM would make the first case look slow
        first = batch_ms(session, FEW, batches)
        large = batch_ms(session, many, batches)
        again = batch_ms(session, FEW, batches)
    options.details.update(few_ms=first, many_ms=large, few_again_ms=again)
    before = min(statistics.median(first[WARM_UP:]), statistics.median(again[WARM_UP:]))
    after = statistics.median(large[WARM_UP:])
    return [
        Measure(name="growth of the batch time", value=after / before, unit="×", bar=at_most(1.5)),
        Measure(name=f"a batch with {3 * FEW:,} timers", value=before, unit="ms"),
        Measure(name=f"a batch with {3 * many:,} timers", value=after, unit="ms"),
        Measure(name="the longest of them", value=max(large[WARM_UP:]), unit="ms"),
    ]


def batch_ms(session: object, keys: int, batches: int) -> list[int]:
    """Milliseconds of the batches that touch the same keys."""
    env = environment(session, max_records_per_batch=FILL_RECORDS)
    stream = env.from_source(FillThenTouch(keys, TOUCHED, batches))
    stream.key_by(key_of).process(MoveTimers()).sink_to(DiscardingSink())
    measured = env.execute("timer growth").metrics.batch_ms
    filling = -(-keys // FILL_RECORDS)
    # Without the last one: at the end of the input all timers fire.
    return measured[filling : filling + batches - 1]
