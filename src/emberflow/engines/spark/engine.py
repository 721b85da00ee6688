"""The entry point of the Spark engine: checks a job, translates it, starts it."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from emberflow.connectors.dataframe import DataFrameSource
from emberflow.connectors.sink import Sink
from emberflow.durable.location import CallStoreLocation, call_store_option
from emberflow.engines.job.limit_ledger import LIMITS_FOLDER
from emberflow.engines.job.manifest import open_directory
from emberflow.engines.job.ownership import Ownership, own_directory
from emberflow.engines.job.savepoint_calls import note_place, place_calls
from emberflow.engines.job.savepoint_start import check_savepoint, commit_prepared, keep_wiring, start_of
from emberflow.engines.job.sink_ownership import newest_start
from emberflow.engines.spark.driver.job import SparkJob
from emberflow.engines.spark.driver.savepoint_start import has_checkpoint, started_from
from emberflow.engines.spark.driver.savepoints import write_savepoint
from emberflow.engines.spark.driver.shipping import add_jars, make_archive
from emberflow.engines.spark.driver.sink_marks import check_sinks
from emberflow.engines.spark.driver.source_starts import source_starts
from emberflow.engines.spark.driver.translate import (
    Translation,
    dataframe_of,
)
from emberflow.engines.spark.session.session import (
    check_function_size,
    is_connect,
    make_active,
    on_one_machine,
    own_session,
    query_settings,
    settings,
    start_python_quickly,
)
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec, for_stage
from emberflow.engines.spark.wire.markers import ErrorForm
from emberflow.engines.spark.wire.packet_rows import sink_dest
from emberflow.errors import InvalidArgument
from emberflow.events.fence import NO_FENCE
from emberflow.events.private_files import make_private_folder
from emberflow.plan.capabilities import check_capabilities, resolve_mode
from emberflow.plan.graphs.job_graph import JobGraph, Stage, StageKind, source_of
from emberflow.plan.graphs.stage_channels import stage_channels
from emberflow.plan.job_contract import JobConfig, RuntimeExecutionMode, new_job_id
from emberflow.plan.specs import SinkSpec
from emberflow.savepoints.restore import SavepointStart

_log = logging.getLogger(__name__)

DEFAULT_MAX_RECORDS = 200_000
DEFAULT_TRIGGER_MS = 100
DEFAULT_TICK_MS = 500
DEFAULT_DEADLINE_MS = 1_000
FRAME_PARTITIONS = 16
"""The number of partitions that key groups of a DataFrame without a checkpoint directory are spread over, whatever its
parallelism: a query that is started again with another one must find its state under the same numbers."""
LONGEST_TRIGGER_MS = 50_000
"""Spark ends Python workers that were idle for a minute, and with them their calls."""


class SparkEngine:
    """Options: `trigger_ms` (interval between micro-batches), `deadline_ms` (how long one waits for agents' calls),
    `call_store` (where the durable call log is kept), `max_records_per_batch`."""

    name = "spark"

    def __init__(self, spark: Any = None, master: str | None = None) -> None:
        self._given = spark
        self._master = master
        self._session: Any = spark

    @property
    def session(self) -> Any:
        if self._session is None:
            from pyspark.sql import SparkSession

            self._session = SparkSession.getActiveSession() or own_session(self._master)
        return self._session

    @property
    def default_parallelism(self) -> int:
        """As many tasks as there are cores on this machine, at most four: each one is a Python process."""
        return min(
            4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        )

    def submit(self, graph: JobGraph, config: JobConfig) -> SparkJob:
        check_capabilities(graph, config, self.name)
        check_savepoint(graph, config)
        ownership = own_directory(config)
        try:
            return self._submit(graph, config, ownership)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise

    def _submit(self, graph: JobGraph, config: JobConfig, ownership: Ownership | None) -> SparkJob:
        start = start_of(graph, config, has_checkpoint=has_checkpoint(config.checkpoint_dir))
        manifest = open_directory(graph, config, self.name)
        fence = NO_FENCE
        if ownership is not None:
            fence = ownership.next_epoch(newest_start(graph, manifest.job_id))
        # Spark's state is bound to the number of partitions with which it was created.
        config = replace(config, parallelism=manifest.parallelism, max_parallelism=manifest.max_parallelism)
        work = Path(tempfile.mkdtemp(prefix="emberflow-job-"))
        home = Path(config.checkpoint_dir).resolve() if config.checkpoint_dir else work
        checkpointed = has_checkpoint(config.checkpoint_dir)
        wiring = keep_wiring(graph, config.checkpoint_dir, start, by_number=True, has_checkpoint=checkpointed)
        note_place(config)
        calls = CallStoreLocation.in_directory(home, manifest.job_id, call_store_option(config))
        if start is not None:
            place_calls(start, calls)
        spec = self._spec(graph, config, manifest.job_id, home, start)
        spec = replace(spec, first_epoch=wiring.first_epoch, hold_file=str(home / "hold"), fence=fence)
        spec = started_from(start, spec)
        translation = self._translation(spec, start, python_files=config.python_files)
        sinks = sinks_of(graph)
        tag = f"emberflow-{manifest.job_id}"

        def begin() -> Any:
            fence.check()
            check_sinks(graph, manifest.job_id, fence, config, batch=spec.batch)
            make_active(self.session)
            self.session.addTag(tag)
            add_jars(self.session, config.jars)
            if start is not None:
                commit_prepared(start, graph)
                # Once a query has committed its own batch, the savepoint is no longer needed.
                translation.start = None if has_checkpoint(str(home)) else start
            if spec.batch:
                return self._run_batch(translation, spec, sinks)
            return self._start_query(translation, spec, config, home, sinks)

        def done() -> None:
            shutil.rmtree(work, ignore_errors=True)
            if ownership is not None:
                ownership.release()

        return SparkJob(
            graph,
            manifest.job_id,
            config,
            sinks,
            spec.client_dir,
            start=begin,
            interrupt=lambda: self.session.interruptTag(tag),
            bounded=graph.stream_graph.bounded,
            batch=spec.batch,
            connect=is_connect(self.session),
            done=done,
            home=home,
            fence=fence,
            write_savepoint=lambda path: write_savepoint(self.session, home, manifest, wiring, calls, path),
        )

    def to_dataframe(self, graph: JobGraph, config: JobConfig) -> Any:
        """The plan without a query: the caller reads or starts it. With a checkpoint directory, agents' durable calls and
        decisions are kept there for one streaming query, to which the caller gives its own `checkpointLocation`."""
        check_capabilities(graph, config, self.name)
        (node,) = graph.sinks
        schema = node.spec.sink.schema  # pyright: ignore[reportAttributeAccessIssue]
        spec = self._frame_spec(graph, config)
        errors = ErrorForm.TRACED if config.show_traceback else ErrorForm.READABLE
        translation = self._translation(spec, errors=errors, python_files=config.python_files)
        wanted = query_settings(spec.parallelism, "")
        for name, value in wanted.items():
            # The caller starts the query later, so these settings must stay.
            self.session.conf.set(name, value)
        return translation.decoded(translation.plan(), sink_dest(0), schema)

    def _frame_spec(self, graph: JobGraph, config: JobConfig) -> JobSpec:
        streaming = resolve_mode(graph, config) is not RuntimeExecutionMode.BATCH
        if streaming and config.checkpoint_dir is not None:
            home = Path(config.checkpoint_dir).resolve()
            owned = _own_for_frames(home, config)
            manifest = open_directory(graph, config, self.name)
            fence = owned.next_epoch()
            config = replace(
                config, parallelism=manifest.parallelism, max_parallelism=manifest.max_parallelism
            )
            note_place(config)
            spec = self._spec(graph, config, manifest.job_id, home)
            return replace(spec, fence=fence, for_one_query=True)
        if streaming and any(graph.traits_of(stage).records_calls for stage in graph.stages):
            _log.warning(
                "the DataFrame's agents store their durable calls in a temporary directory: give the environment a "
                "checkpoint_dir in addition to the query's own checkpointLocation; otherwise a query that is restarted after "
                "a crash makes calls again and may lose output"
            )
        # A separate directory: the caller may run any number of these, and they must not see each other's calls.
        home = Path(tempfile.mkdtemp(prefix="emberflow-frame-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        spec = self._spec(graph, config, f"frame{new_job_id()}", home)
        return replace(spec, spread_over=FRAME_PARTITIONS)

    def _spec(
        self, graph: JobGraph, config: JobConfig, job_id: str, home: Path, start: SavepointStart | None = None
    ) -> JobSpec:
        batch = resolve_mode(graph, config) is RuntimeExecutionMode.BATCH
        starts = source_starts(graph, config, home, start)
        counts = {uid: len(positions) for uid, positions in starts.items()}
        ticking = None if batch else _ticking_stage(graph)
        return JobSpec(
            graph=graph,
            job_id=job_id,
            parallelism=config.parallelism,
            max_parallelism=config.max_parallelism,
            batch=batch,
            channels=stage_channels(graph, counts, lambda node: 1),
            start_positions={
                stage.id: starts[graph.stream_graph.node(stage.head).uid]
                for stage in graph.stages
                if stage.kind is StageKind.SOURCE
            },
            at_end={stage.id: _at_end(graph, stage) for stage in graph.stages},
            max_records=_positive(config, "max_records_per_batch", DEFAULT_MAX_RECORDS),
            client_dir=str(home / "client"),
            calls=CallStoreLocation.in_directory(home, job_id, call_store_option(config)),
            limits_dir=str(home / LIMITS_FOLDER) if on_one_machine(self.session) else "",
            ticking_stage=ticking,
            deadline_ms=_positive(config, "deadline_ms", DEFAULT_DEADLINE_MS),
            parameters=config.parameters,
        )

    def _translation(
        self,
        spec: JobSpec,
        start: SavepointStart | None = None,
        errors: ErrorForm = ErrorForm.MARKED,
        python_files: tuple[str, ...] = (),
    ) -> Translation:
        start_python_quickly(self.session)
        frames = {
            stage.id: frame
            for stage in spec.graph.stages
            if stage.kind is StageKind.SOURCE and (frame := dataframe_of(spec, stage)) is not None
        }
        package_data = [
            item for stage in spec.graph.stages for item in spec.graph.traits_of(stage).package_data
        ]
        data, archive = dump_spec(for_stage(spec, None)), make_archive(python_files, package_data)
        if not spec.batch and any(stage.level for stage in spec.graph.stages):
            check_function_size(self.session, len(data) + len(archive[0]))
        return Translation(self.session, spec, data, archive, frames, start, errors)

    def _start_query(
        self, translation: Translation, spec: JobSpec, config: JobConfig, home: Path, sinks: list[Sink[Any]]
    ) -> Any:
        parking = any(spec.graph.traits_of(stage).may_park for stage in spec.graph.stages)
        ticks = any(spec.graph.traits_of(stage).sets_timers for stage in spec.graph.stages) or (
            parking and spec.ticking_stage is None
        )
        trigger_ms = _positive(config, "trigger_ms", DEFAULT_TICK_MS if ticks else DEFAULT_TRIGGER_MS)
        if parking and trigger_ms >= LONGEST_TRIGGER_MS:
            raise InvalidArgument(
                f"the option 'trigger_ms' is {trigger_ms:,}; with agents that wait for calls it must be below "
                f"{LONGEST_TRIGGER_MS:,}",
                cause="Spark terminates Python workers that were idle for a minute, and with them their calls",
                way_out="choose a shorter trigger",
            )
        # Spark creates files below it according to the umask.
        make_private_folder(home / "spark")
        checkpoint = str(home / "spark")
        wanted = query_settings(spec.parallelism, checkpoint)
        wanted["spark.sql.streaming.noDataMicroBatches.enabled"] = str(ticks).lower()
        with settings(self.session, wanted):
            writer = (
                translation.plan().writeStream.option("checkpointLocation", checkpoint).outputMode("append")
            )
            writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds").queryName(
                f"emberflow-{spec.job_id}"
            )
            target = "noop" if all(sink.discards for sink in sinks) else translation.register_sink()
            return writer.format(target).start()

    def _run_batch(self, translation: Translation, spec: JobSpec, sinks: list[Sink[Any]]) -> None:
        with settings(self.session, {"spark.sql.shuffle.partitions": str(spec.parallelism)}):
            target = "noop" if all(sink.discards for sink in sinks) else translation.register_sink()
            mode = "overwrite" if target == "noop" else "append"
            translation.plan().write.format(target).mode(mode).save()


_frame_owners: dict[Path, Ownership] = {}


def _own_for_frames(home: Path, config: JobConfig) -> Ownership:
    """A DataFrame owns its checkpoint directory as long as this process runs, or until a later DataFrame takes it over."""
    owned = _frame_owners.get(home) or own_directory(config)
    assert owned is not None
    _frame_owners[home] = owned
    return owned


def sinks_of(graph: JobGraph) -> list[Sink[Any]]:
    return [node.spec.sink for node in graph.sinks if isinstance(node.spec, SinkSpec)]


def _ticking_stage(graph: JobGraph) -> int | None:
    """The first source that is read by one of our planners, if runs may be parked at all."""
    if not any(graph.traits_of(stage).may_park for stage in graph.stages):
        return None
    for stage in graph.stages:
        if stage.kind is StageKind.SOURCE and not isinstance(source_of(graph, stage).source, DataFrameSource):
            return stage.id
    return None


def _at_end(graph: JobGraph, stage: Stage) -> bool:
    if stage.kind is StageKind.SOURCE:
        return not source_of(graph, stage).source.ordered
    return not graph.traits_of(stage).keyed_by_channel


def _positive(config: JobConfig, name: str, default: int) -> int:
    value = config.options.get(name, default)
    if not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"the option {name!r} must be a positive whole number, not {value!r}")
    return value


def make_engine(spark: Any = None, master: str | None = None) -> SparkEngine:
    return SparkEngine(spark, master)
