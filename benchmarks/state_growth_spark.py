"""Does a batch take longer if there are more keys in state that it does not access?

The same 2,000 keys are accessed once per batch, with a thousand and with a million keys in state (2,000 in the first
case, once they have been accessed).
"""

from __future__ import annotations

import statistics

from benchmarks.counting import RunningSum
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from benchmarks.steered_source import FillThenTouch
from emberflow.streams import DiscardingSink, RuntimeExecutionMode

FEW, MANY, TOUCHED = 1_000, 1_000_000, 2_000
FILL_RECORDS = 200_000
WARM_UP = 5


def key_of(value: tuple[int, int]) -> int:
    return value[0]


def run(options: Options) -> list[Measure]:
    batches = WARM_UP + options.pick(10, 30)
    with spark_session("state growth") as session:
        batch_ms(session, FEW, WARM_UP)  # a cold JVM would make the first case look slow
        few = batch_ms(session, FEW, batches)
        many = batch_ms(session, MANY, batches)
        few_again = batch_ms(session, FEW, batches)
    options.details.update(few_ms=few, many_ms=many, few_again_ms=few_again)
    # Few keys before and after: the faster one counts, so that neither a cold JVM nor other load flatters the result.
    before = min(statistics.median(few[WARM_UP:]), statistics.median(few_again[WARM_UP:]))
    after = statistics.median(many[WARM_UP:])
    return [
        Measure(name="growth of the batch time", value=after / before, unit="×", bar=at_most(1.5)),
        Measure(name=f"a batch with {FEW:,} keys in state", value=before, unit="ms"),
        Measure(name=f"a batch with {MANY:,} keys in state", value=after, unit="ms"),
    ]


def batch_ms(session: object, keys: int, batches: int) -> list[int]:
    """Milliseconds of the batches that access the same keys."""
    env = environment(session, max_records_per_batch=FILL_RECORDS)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    stream = env.from_source(FillThenTouch(keys, TOUCHED, batches))
    stream.key_by(key_of).process(RunningSum()).sink_to(DiscardingSink())
    measured = env.execute("state growth").metrics.batch_ms
    filling = -(-keys // FILL_RECORDS)
    return measured[filling : filling + batches]
