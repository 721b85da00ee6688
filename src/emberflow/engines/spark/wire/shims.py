"""Thin classes that Spark pickles by value: each makes the shipped code importable in the process in which it is unpickled
(`bootstrap.py`), imports the real code and delegates to it.

Everything is created inside functions, because cloudpickle sends what it can import by name only by name. For the same
reason nothing in here may use a module-level name of this package.

`form` is how our errors leave a worker: the name of a function in `markers.py`.
"""

from __future__ import annotations

from typing import Any


def make_source(name: str, bootstrap: Any, form: str, data: bytes, stage_id: int, channels: int) -> Any:
    """A data source class, streaming and batch."""
    from pyspark.sql.datasource import DataSource, InputPartition

    class Part(InputPartition):
        def __init__(self, number: int, share: bytes) -> None:
            self.number = number
            self.share = share

    stream_reader = make_stream_reader(Part, bootstrap, form, data, stage_id)
    reader_class = make_reader(Part, bootstrap, form, data, stage_id, channels)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return "kg int, dest int, n long, wm long, packet binary"

        def reader(self, schema: Any) -> Any:
            return reader_class()

        def streamReader(self, schema: Any) -> Any:
            return stream_reader()

    return Source


def make_stream_reader(part: Any, bootstrap: Any, form: str, data: bytes, stage_id: int) -> Any:
    """Reads a source in micro-batches; `part` is the class of its partitions."""
    from pyspark.sql.datasource import DataSourceStreamReader

    class StreamReader(DataSourceStreamReader):
        def __init__(self) -> None:
            self._planner: Any = None

        def __getstate__(self) -> Any:
            return {"_planner": None}

        def _plan(self) -> Any:
            if self._planner is None:
                self._planner = bootstrap("emberflow.engines.spark.driver.offsets").OffsetPlanner(
                    data, stage_id
                )
            return self._planner

        def initialOffset(self) -> Any:
            return getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)(
                lambda: self._plan().initial()
            )()

        def latestOffset(self, start: Any, limit: Any = None) -> Any:
            return getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)(
                lambda: self._plan().latest(start)
            )()

        def getDefaultReadLimit(self) -> Any:
            from pyspark.sql.streaming.datasource import ReadAllAvailable

            return ReadAllAvailable()

        def partitions(self, start: Any, end: Any) -> Any:
            import cloudpickle

            guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
            shares = guard(lambda: self._plan().shares(start, end))()
            return [part(number, cloudpickle.dumps(share)) for number, share in enumerate(shares)]

        def read(self, partition: Any) -> Any:
            import pickle

            module = bootstrap("emberflow.engines.spark.worker.source_reader")
            guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
            share = guard(pickle.loads)(partition.share)
            return guard(module.read_share)(data, stage_id, share, partition.number)

        def commit(self, end: Any) -> None:
            pass

    return StreamReader


def make_reader(part: Any, bootstrap: Any, form: str, data: bytes, stage_id: int, channels: int) -> Any:
    """Reads a source as a whole."""
    from pyspark.sql.datasource import DataSourceReader

    class Reader(DataSourceReader):
        def partitions(self) -> Any:
            return [part(number, b"") for number in range(channels)]

        def read(self, partition: Any) -> Any:
            module = bootstrap("emberflow.engines.spark.worker.source_reader")
            guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
            return guard(module.read_whole)(data, stage_id, partition.number, partition.number)

    return Reader


def make_processor(bootstrap: Any, form: str, data: bytes, stage_ids: list[int], timed: bool) -> Any:
    """A stateful processor for the keyed stages of one level."""
    from pyspark import TaskContext
    from pyspark.sql.streaming import StatefulProcessor  # pyright: ignore[reportPrivateImportUsage]

    class Processor(StatefulProcessor):
        def init(self, handle: Any) -> None:
            from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

            blob = StructType([StructField("v", BinaryType())])
            number = StructType([StructField("k", IntegerType())])
            if TaskContext.get() is None:
                # Before the first batch, Spark asks on the driver, in a separate process, which state there will be.
                for stage_id in stage_ids:
                    handle.getValueState(f"hot{stage_id}", blob)
                    handle.getMapState(f"cold{stage_id}", number, blob)
                return
            module = bootstrap("emberflow.engines.spark.worker.keyed_level")
            self._guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
            self._level = module.KeyedLevel(data, stage_ids, timed=timed)
            self._guard(self._level.init)(
                handle,
                lambda name: handle.getValueState(name, blob),
                lambda name: handle.getMapState(name, number, blob),
            )

        def _rows(self, rows: Any) -> Any:
            from pyspark.sql import Row

            make = Row("kg", "dest", "n", "wm", "packet")
            for row in rows:
                yield make(*row)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            now_ms = timerValues.getCurrentProcessingTimeInMs()
            return self._rows(self._guard(self._level.on_rows)(key[0], rows, now_ms))

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            now_ms = timerValues.getCurrentProcessingTimeInMs()
            self._guard(self._level.on_initial)(key[0], initialState, now_ms)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:
            now_ms = timerValues.getCurrentProcessingTimeInMs()
            expiry_ms = expiredTimerInfo.getExpiryTimeInMs()
            return self._rows(self._guard(self._level.on_timer)(key[0], expiry_ms, now_ms))

        def close(self) -> None:
            if TaskContext.get() is not None:
                self._guard(self._level.close)()

    return Processor()


def make_mapper(bootstrap: Any, form: str, module: str, function: str, *args: Any) -> Any:
    """A function for mapInArrow: `module.function(*args, batches)`."""

    def mapper(batches: Any) -> Any:
        guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
        yield from guard(getattr(bootstrap(module), function))(*args, batches)

    return mapper


def make_sink(name: str, bootstrap: Any, form: str, data: bytes) -> Any:
    """A data source class for writing, streaming and batch."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceStreamArrowWriter,
        WriterCommitMessage,
    )

    class Message(WriterCommitMessage):
        def __init__(self, payload: bytes) -> None:
            self.payload = payload

    def write(batches: Any) -> Any:
        module = bootstrap("emberflow.engines.spark.worker.sink_writer")
        guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
        return Message(guard(module.write_task)(data, batches))

    def commit(messages: Any, epoch: int) -> None:
        module = bootstrap("emberflow.engines.spark.driver.batch_commit")
        guard = getattr(bootstrap("emberflow.engines.spark.wire.markers"), form)
        guard(module.commit_epoch)(data, [item.payload for item in messages if item is not None], epoch)

    class StreamWriter(DataSourceStreamArrowWriter):
        def write(self, iterator: Any) -> Any:
            return write(iterator)

        def commit(self, messages: Any, batchId: int) -> None:
            commit(messages, batchId)

        def abort(self, messages: Any, batchId: int) -> None:
            pass

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Any) -> Any:
            return write(iterator)

        def commit(self, messages: Any) -> None:
            commit(messages, 0)

        def abort(self, messages: Any) -> None:
            pass

    class Sink(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return Writer()

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return StreamWriter()

    return Sink
