"""What every engine does when a job begins from a savepoint, and what it leaves behind so that one can be taken."""

from __future__ import annotations

from pathlib import Path

from emberflow.connectors.sink import sink_failed
from emberflow.engines.call_log import CALLS_FOLDER
from emberflow.engines.manifest import write_atomically
from emberflow.errors import InvalidArgument
from emberflow.plan.job import JobConfig
from emberflow.plan.job_graph import JobGraph
from emberflow.plan.specs import SinkSpec
from emberflow.savepoints.restore import SavepointStart, open_start
from emberflow.savepoints.wiring import FILE, Wiring, read_wiring, wiring_json, wiring_of


def start_of(graph: JobGraph, config: JobConfig, *, has_checkpoint: bool) -> SavepointStart | None:
    """The savepoint that the job begins with. A job that has a checkpoint of its own goes on from that."""
    if config.savepoint is None or has_checkpoint:
        return None
    return open_start(
        config.savepoint,
        graph,
        config.max_parallelism,
        allow_non_restored_state=config.allow_non_restored_state,
    )


def keep_wiring(graph: JobGraph, directory: str | None, start: SavepointStart | None) -> Wiring:
    """The job's wiring, stored in its checkpoint directory. The first epoch stays what it was at the first start."""
    if start is not None:
        wiring = start.wiring
    else:
        known = directory is not None and (Path(directory) / FILE).exists()
        first = read_wiring(Path(directory)).first_epoch if known and directory is not None else 0
        wiring = wiring_of(graph, first)
    if directory is not None:
        write_atomically(Path(directory) / FILE, wiring_json(wiring))
    return wiring


def commit_prepared(start: SavepointStart, graph: JobGraph) -> None:
    """Outputs that were promised when the savepoint was taken become visible, if they are not; a sink takes what it has
    as a repetition."""
    prepared = start.reader.prepared()
    if prepared is None:
        return
    job_id, epoch, parts = prepared
    for node in graph.sinks:
        if node.uid in parts and isinstance(node.spec, SinkSpec):
            try:
                node.spec.sink.commit(job_id, node.uid, epoch, parts[node.uid])
            except Exception as error:
                raise sink_failed(node.name, "commit", error) from error


def place_calls(start: SavepointStart, directory: str) -> None:
    """The log of durable calls goes on in the job's own directory: what was answered is not asked again."""
    for name, data in start.reader.call_files():
        path = Path(directory) / CALLS_FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


def job_has_ended() -> InvalidArgument:
    return InvalidArgument(
        "the job has ended, so no savepoint can be taken of it while it runs",
        way_out="make one of its checkpoint directory: emberflow savepoint create CHECKPOINT_DIR SAVEPOINT_DIR",
    )
