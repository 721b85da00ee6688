"""Keyed ValueState per record on Spark streaming, compared with the same job written by hand, in one session."""

from __future__ import annotations

import statistics

from benchmarks.counting import RunningSum, key_of, record
from benchmarks.measurement import Measure, Options, at_least
from benchmarks.session import environment, spark_session
from emberflow.streams import DataGeneratorSource, DiscardingSink, RuntimeExecutionMode

BATCH_RECORDS = 200_000
WARM_UP = 3


def run(options: Options) -> list[Measure]:
    from benchmarks import by_hand

    with spark_session("keyed state") as session:
        ours_ms = emberflow_batch_ms(session, WARM_UP + options.pick(5, 12))
        literal_ms = by_hand.batch_ms(
            session, by_hand.SumPerRecord(), records=BATCH_RECORDS, batches=options.pick(2, 3)
        )
        expert_ms = by_hand.batch_ms(
            session, by_hand.SumPerBatch(), records=BATCH_RECORDS, batches=WARM_UP + options.pick(2, 4)
        )
    options.details.update(emberflow_ms=ours_ms, per_record_ms=literal_ms, per_batch_ms=expert_ms)
    ours = rate(ours_ms[WARM_UP:])
    # Thirteen seconds a batch: the JVM is warm after the first one.
    literal, expert = rate(literal_ms[1:]), rate(expert_ms[WARM_UP:])
    return [
        Measure(name="against PySpark by hand", value=ours / literal, unit="×", bar=at_least(5)),
        Measure(name="emberflow, Spark streaming", value=ours, unit="records/s", bar=at_least(150_000)),
        Measure(name="by hand, state per record", value=literal, unit="records/s"),
        Measure(name="by hand, state once per key and batch", value=expert, unit="records/s"),
    ]


def rate(batch_ms: list[int]) -> float:
    return BATCH_RECORDS * 1000 / statistics.median(batch_ms)


def emberflow_batch_ms(session: object, batches: int) -> list[int]:
    env = environment(session, max_records_per_batch=BATCH_RECORDS)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    source = DataGeneratorSource(record, count=batches * BATCH_RECORDS, parallelism=2)
    env.from_source(source).key_by(key_of).process(RunningSum()).sink_to(DiscardingSink())
    metrics = env.execute("keyed state").metrics
    if metrics.records_in != batches * BATCH_RECORDS:
        raise RuntimeError(f"{metrics.records_in} records came in instead of {batches * BATCH_RECORDS}")
    # The end of the input may take a separate batch, without records.
    return metrics.batch_ms[:batches]
