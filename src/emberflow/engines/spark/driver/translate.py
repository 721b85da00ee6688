"""Translates a job graph into one DataFrame of packet rows.

Level by level: the packets of all sources and earlier levels are shuffled by key group into the keyed stages of the
level. Rows for later levels or for sinks pass through, so that a stage feeding several others runs once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from emberflow.connectors.dataframe import DataFrameSource
from emberflow.engines.spark.wire import shims
from emberflow.engines.spark.wire.bootstrap import make_bootstrap
from emberflow.engines.spark.wire.frame_types import check_types, zone_of
from emberflow.engines.spark.wire.initial_state import initial_rows
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec, for_stage
from emberflow.engines.spark.wire.markers import ErrorForm
from emberflow.engines.spark.wire.packet_rows import LATE, PARKED, ROW_SCHEMA, STATS
from emberflow.plan.graphs.job_graph import JobGraph, Stage, StageKind, source_of
from emberflow.savepoints.restore import SavepointStart

OBSERVED_IN = "emberflow_in"
OBSERVED_OUT = "emberflow_out"


class Translation:
    """Registers data sources in a session and builds the plan from them."""

    def __init__(
        self,
        session: Any,
        spec: JobSpec,
        data: bytes,
        archive: tuple[bytes, str],
        frames: dict[int, Any],
        start: SavepointStart | None = None,
        errors: ErrorForm = ErrorForm.MARKED,
    ) -> None:
        self._session = session
        self._spec = spec
        self._data = data
        self._code = make_bootstrap(*archive), errors.value
        self._frames = frames
        self.start = start
        """The savepoint whose state the query starts with."""

    def plan(self) -> Any:
        """The rows for the sinks, after all other steps."""
        from pyspark.sql import functions as F

        graph = self._spec.graph
        levels = max(stage.level for stage in graph.stages)
        current = self._sources()
        current = current.observe(
            OBSERVED_IN,
            F.sum(F.when(F.col("dest") == STATS, F.col("n"))).alias("records"),
            F.max("wm").alias("watermark"),
        ).where(F.col("dest") != STATS)
        for level in range(1, levels + 1):
            stages = [stage for stage in graph.stages if stage.level == level]
            current = self._batch_level(current, stages) if self._spec.batch else self._level(current, stages)
        return current.observe(
            OBSERVED_OUT,
            F.sum(F.when(F.col("dest") < PARKED, F.col("n"))).alias("records"),
            F.sum(F.when(F.col("dest") == PARKED, F.col("n"))).alias("parked"),
            F.sum(F.when(F.col("dest") == LATE, F.col("n"))).alias("late"),
        ).where((F.col("dest") != PARKED) & (F.col("dest") != LATE))

    def _sources(self) -> Any:
        frames = [
            self._frame(stage) if stage.id in self._frames else self._source(stage)
            for stage in self._spec.graph.stages
            if stage.kind is StageKind.SOURCE
        ]
        united = frames[0]
        for frame in frames[1:]:
            united = united.union(frame)
        return united

    def _source(self, stage: Stage) -> Any:
        name = f"emberflow_{self._spec.job_id}_{stage.id}"
        data = dump_spec(for_stage(self._spec, stage.id))
        made = shims.make_source(name, *self._code, data, stage.id, self._spec.channels[stage.id])
        self._session.dataSource.register(made)
        reader = self._session.read if self._spec.batch else self._session.readStream
        return reader.format(name).load()

    def _frame(self, stage: Stage) -> Any:
        check_types(self._frames[stage.id].schema, into_spark=False)
        mapper = shims.make_mapper(
            *self._code, "emberflow.engines.spark.worker.batch_level", "feed_frame", self._data, stage.id
        )
        return self._frames[stage.id].mapInArrow(mapper, ROW_SCHEMA)

    def _level(self, current: Any, stages: list[Stage]) -> Any:
        from pyspark.sql import functions as F

        timed = any(uses_processing_time(self._spec.graph, stage) for stage in stages)
        processor = shims.make_processor(*self._code, self._data, [stage.id for stage in stages], timed)
        mode = "ProcessingTime" if timed else "None"
        if not timed:
            # The batch's own time, the same when it is repeated; with timers, Spark passes it.
            current = current.withColumn("at_ms", F.unix_millis(F.current_timestamp()))
        grouped = current.groupBy("kg")
        if self.start is None:
            return grouped.transformWithState(processor, ROW_SCHEMA, "Append", mode)
        make_mapper = partial(shims.make_mapper, *self._code)
        initial = initial_rows(self._session, self.start, self._spec, stages, make_mapper)
        return grouped.transformWithState(processor, ROW_SCHEMA, "Append", mode, initial.groupBy("kg"))

    def _batch_level(self, current: Any, stages: list[Stage]) -> Any:
        mapper = shims.make_mapper(
            *self._code,
            "emberflow.engines.spark.worker.batch_level",
            "run_level",
            self._data,
            [stage.id for stage in stages],
        )
        shuffled = current.repartition(self._spec.parallelism, "kg").sortWithinPartitions("kg", "dest")
        return shuffled.mapInArrow(mapper, ROW_SCHEMA)

    def register_sink(self) -> str:
        name = f"emberflow_{self._spec.job_id}_sink"
        self._session.dataSource.register(shims.make_sink(name, *self._code, self._data))
        return name

    def decoded(self, plan: Any, dest: int, schema: Any) -> Any:
        """One sink's records as rows with a schema."""
        from pyspark.sql import functions as F

        # A DDL string is parsed by Spark, which workers cannot access.
        struct = self._session.createDataFrame([], schema).schema
        check_types(struct, into_spark=True)
        time_zone = self._session.conf.get("spark.sql.session.timeZone")
        zone_of(time_zone)
        mapper = shims.make_mapper(
            *self._code, "emberflow.engines.spark.worker.frames", "decode_rows", struct.json(), time_zone
        )
        return plan.where(F.col("dest") == dest).mapInArrow(mapper, struct)


def uses_processing_time(graph: JobGraph, stage: Stage) -> bool:
    """Whether a stage needs Spark's timers: for processing-time timers of its own, or for the end of phase one."""
    waits = any(graph.stream_graph.node(node_id).spec.traits.may_wait for node_id in stage.nodes)
    return waits or graph.traits_of(stage).sets_timers


def dataframe_of(spec: JobSpec, stage: Stage) -> Any:
    """The Spark DataFrame of a source stage, or None."""
    source = source_of(spec.graph, stage).source
    return source.dataframe if isinstance(source, DataFrameSource) else None
