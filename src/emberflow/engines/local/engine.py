"""The entry point of the local engine: checks a job and starts it."""

from __future__ import annotations

import queue
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from emberflow.connectors.dataframe import DataFrameSink, LocalFrame, column_names
from emberflow.connectors.table_rows import as_row
from emberflow.engines.job.manifest import open_directory
from emberflow.engines.job.ownership import own_directory
from emberflow.engines.job.savepoint_calls import note_place
from emberflow.engines.job.savepoint_start import check_savepoint, keep_wiring, start_of
from emberflow.engines.local.checkpointing.checkpoints import (
    FILES_FOLDER,
    CheckpointStore,
    FileCheckpoints,
    NoCheckpoints,
)
from emberflow.engines.local.checkpointing.latest_checkpoint import read_latest
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SQLITE_FILE, SqliteCheckpoints
from emberflow.engines.local.job import LocalJob
from emberflow.errors import InvalidArgument, ProgramChanged
from emberflow.plan.capabilities import check_capabilities
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig
from emberflow.plan.restart_strategy import NoRestart
from emberflow.plan.specs import SinkSpec

STATE_BACKENDS = ("memory", "sqlite")


class LocalEngine:
    """Runs everything in this process. Options: `state_backend` ("memory" or "sqlite"), `clock` (for tests)."""

    name = "local"
    default_parallelism = 1

    def submit(self, graph: JobGraph, config: JobConfig) -> LocalJob:
        check_capabilities(graph, config, self.name)
        check_savepoint(graph, config)
        own = None
        if restarts(config) and config.checkpoint_dir is None:
            # Restarts need checkpoints: keep them in a temporary directory as long as the job runs.
            own = tempfile.mkdtemp(prefix="emberflow-job-")
            config = replace(config, checkpoint_dir=own)
        ownership = own_directory(config)
        try:
            start = start_of(graph, config, has_checkpoint=has_checkpoint(config.checkpoint_dir))
            manifest = open_directory(graph, config, self.name)
            wiring = keep_wiring(graph, config.checkpoint_dir, start)
            note_place(config)
            return LocalJob(graph, config, manifest, _store(config), wiring, ownership, start, own)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise

    def to_dataframe(self, graph: JobGraph, config: JobConfig) -> LocalFrame:
        """Runs the job to completion and returns the table."""
        (sink,) = [node.spec.sink for node in graph.sinks if isinstance(node.spec, SinkSpec)]
        assert isinstance(sink, DataFrameSink)
        columns = column_names(sink.schema)
        batches: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        sink.deliver = lambda batch, subtask: batches.put(list(batch.values))
        self.submit(graph, config).wait()
        rows = [as_row(value, columns) for _ in range(batches.qsize()) for value in batches.get()]
        return LocalFrame(columns, rows)


def _store(config: JobConfig) -> CheckpointStore:
    backend = config.options.get("state_backend", "memory")
    if backend not in STATE_BACKENDS:
        raise InvalidArgument(
            f"there is no state backend {backend!r}", way_out=f"use one of {', '.join(STATE_BACKENDS)}"
        )
    if config.checkpoint_dir is None:
        return NoCheckpoints()
    directory = Path(config.checkpoint_dir)
    stored = stored_backend(directory)
    if stored not in (None, backend):
        raise ProgramChanged(
            f"the checkpoint in {directory} was written with the state backend {stored!r}, now it is {backend!r}",
            way_out=f'call env.set_option("state_backend", "{stored}"), or start with an empty checkpoint directory',
            committed="the checkpoint was not changed",
        )
    return (
        SqliteCheckpoints(directory)
        if backend == "sqlite"
        else FileCheckpoints(directory, config.retained_checkpoints)
    )


def stored_backend(directory: Path) -> str | None:
    """The backend that has written checkpoints there."""
    if (directory / SQLITE_FILE).exists():
        return "sqlite"
    return "memory" if any((directory / FILES_FOLDER).glob("chk-*.ckpt")) else None


def has_checkpoint(directory: str | None) -> bool:
    """Whether a job would continue from there."""
    if directory is None:
        return False
    # A checkpoint that is recorded but lost counts: the job must not start without it.
    if read_latest(Path(directory)) is not None:
        return True
    if (Path(directory) / SQLITE_FILE).exists():
        store = SqliteCheckpoints(Path(directory))
        try:
            return store.has_checkpoint()
        finally:
            store.close()
    return stored_backend(Path(directory)) is not None


def restarts(config: JobConfig) -> bool:
    return config.restart is not None and not isinstance(config.restart, NoRestart)


def make_engine(**options: Any) -> LocalEngine:
    if options.get("spark") is not None:
        raise InvalidArgument("the engine 'local' does not take a SparkSession", way_out='use engine="spark"')
    return LocalEngine()
