"""What every engine does when a job starts from a savepoint, and what it stores so that one can be created."""

from __future__ import annotations

from pathlib import Path

from emberflow.connectors.sink import sink_failed
from emberflow.errors import CheckpointUnusable, InvalidArgument, ProgramChanged, describe_cause
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig
from emberflow.plan.specs import SinkSpec
from emberflow.savepoints.restore import SavepointStart, open_start
from emberflow.savepoints.wiring import (
    FILE,
    Wiring,
    missing_wiring,
    read_wiring,
    wiring_of,
    write_wiring,
)


def check_savepoint(graph: JobGraph, config: JobConfig) -> None:
    """Called before a checkpoint directory is created, so that an incompatible savepoint leaves no trace in it."""
    if config.savepoint is not None and not (config.checkpoint_dir and Path(config.checkpoint_dir).exists()):
        start_of(graph, config, has_checkpoint=False)


def start_of(graph: JobGraph, config: JobConfig, *, has_checkpoint: bool) -> SavepointStart | None:
    """The savepoint that the job starts from. A job that has its own checkpoint continues from that instead."""
    if has_checkpoint:
        return None
    if config.savepoint is None:
        _check_not_begun(config.checkpoint_dir)
        return None
    return open_start(
        config.savepoint,
        graph,
        config.max_parallelism,
        allow_non_restored_state=config.allow_non_restored_state,
    )


def _check_not_begun(directory: str | None) -> None:
    """Raises if a job was to start from a savepoint and has no checkpoint yet: it must not start without the savepoint."""
    known = directory is not None and (Path(directory) / FILE).exists()
    if known and directory is not None and read_wiring(Path(directory)).first_epoch:
        raise CheckpointUnusable(
            f"the job in {directory} should start from a savepoint and has no checkpoint yet",
            way_out="start it with the savepoint again, or with an empty checkpoint directory",
        )


def keep_wiring(
    graph: JobGraph,
    directory: str | None,
    start: SavepointStart | None,
    *,
    by_number: bool = False,
    has_checkpoint: bool = False,
) -> Wiring:
    """The job's wiring, stored in its checkpoint directory. The first epoch is kept from the first start.
    `by_number`: the engine finds a step's state by its stage number, which must therefore not change."""
    known = directory is not None and (Path(directory) / FILE).exists()
    if start is not None:
        wiring = start.wiring
    elif known and directory is not None:
        stored = read_wiring(Path(directory))
        wiring = wiring_of(graph, stored.first_epoch)
        if by_number and stored.stages != wiring.stages:
            raise ProgramChanged(
                f"the steps are in a different order than when the checkpoint in {directory} was written: "
                f"{', '.join(stored.stages)} then, {', '.join(wiring.stages)} now",
                way_out="restore the old order, or create a savepoint from the checkpoint "
                "(emberflow savepoint create) and start from that",
                committed="the checkpoint was not changed",
            )
        changed = [uid for uid, tasks in stored.tasks.items() if wiring.tasks.get(uid, tasks) != tasks]
        if by_number and changed:
            raise ProgramChanged(
                f"the parallelism of {', '.join(map(repr, changed))} has changed since the checkpoint in {directory} was written",
                cause="state of numbered tasks cannot be distributed again within a checkpoint of Spark",
                way_out="restore the old parallelism, or create a savepoint from the checkpoint "
                "(emberflow savepoint create) and start from that",
                committed="the checkpoint was not changed",
            )
    elif by_number and has_checkpoint and directory is not None:
        raise missing_wiring(Path(directory))
    else:
        wiring = wiring_of(graph)
    if directory is not None:
        try:
            write_wiring(Path(directory), wiring)
        except OSError as error:
            raise CheckpointUnusable(
                f"the checkpoint directory {directory} cannot be written",
                cause=describe_cause(error),
                way_out="free space or choose another directory (checkpoint_dir=, --checkpoint-dir)",
                committed="the last checkpoint is complete; running the program again starts there",
            ) from error
    return wiring


def commit_prepared(start: SavepointStart, graph: JobGraph) -> None:
    """Commits the outputs that were prepared when the savepoint was created; a sink ignores those that it has already
    committed."""
    prepared = start.reader.prepared()
    if prepared is None:
        return
    job_id, epoch, parts = prepared
    for node in graph.sinks:
        if node.uid in parts and isinstance(node.spec, SinkSpec):
            try:
                node.spec.sink.commit(job_id, node.uid, epoch, parts[node.uid])
            except BaseException as error:
                raise sink_failed(node.name, "commit", error) from error


def job_has_ended() -> InvalidArgument:
    return InvalidArgument(
        "the job has ended, so no savepoint can be taken of it while it runs",
        way_out="create one from its checkpoint directory: emberflow savepoint create CHECKPOINT_DIR SAVEPOINT_DIR",
    )
