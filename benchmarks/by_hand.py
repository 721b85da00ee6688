"""The keyed-state job as written with plain PySpark: `groupBy(key).transformWithState`, Row API.

Two forms: state is read and written for every record, like the measured job; and the form an expert writes, which
reads and writes once per key and batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

from benchmarks.counting import KEYS

STATE = StructType([StructField("sum", LongType())])
OUTPUT = StructType([StructField("key", StringType()), StructField("sum", LongType())])


class SumPerRecord(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self._sum = handle.getValueState("sum", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            found = self._sum.get()
            total = (found[0] if found is not None else 0) + row.value
            self._sum.update((total,))
            yield Row(key=key[0], sum=total)

    def close(self) -> None:
        pass


class SumPerBatch(SumPerRecord):
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        found = self._sum.get()
        total = found[0] if found is not None else 0
        for row in rows:
            total += row.value
            yield Row(key=key[0], sum=total)
        self._sum.update((total,))


def batch_ms(spark: SparkSession, processor: StatefulProcessor, *, records: int, batches: int) -> list[int]:
    """Milliseconds of each of the first batches, as Spark reports them."""
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", records)
        .option("numPartitions", 2)
        .load()
        .selectExpr(f"concat('k', value % {KEYS}) AS key", "value")
    )
    sums = source.groupBy("key").transformWithState(
        statefulProcessor=processor, outputStructType=OUTPUT, outputMode="Append", timeMode="None"
    )
    query = sums.writeStream.format("noop").outputMode("append").start()
    try:
        while True:
            progress = [item for item in query.recentProgress if item["numInputRows"] >= records]
            if len(progress) >= batches:
                return [item["durationMs"]["triggerExecution"] for item in progress[:batches]]
            if not query.isActive:
                raise RuntimeError(f"the query ended early: {query.exception()}")
            time.sleep(0.2)
    finally:
        query.stop()
