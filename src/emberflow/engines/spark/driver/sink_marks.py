"""What a Spark job's directory knows about its sinks, in `sinks.json`: the ledger of each, and its last epochs with output.

Written before a batch's output is committed, so a sink that has less than the file says has lost output. It also names
the files with the batch's decisions, which are needed if the batch is repeated.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from emberflow.durable.decisions import FileDecisions
from emberflow.durable.location import CALLS_FOLDER
from emberflow.engines.job.sink_ownership import (
    Mark,
    StateEpochs,
    accepts_sinks,
    matched_marks,
    moved_on,
    take_over_sinks,
)
from emberflow.engines.spark.driver.savepoints import last_batch
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.errors import CheckpointUnusable, describe_cause
from emberflow.events.fence import Fence
from emberflow.events.stored_files import corrupt, read_json, write_json
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig

NAME = "sinks.json"
_FORMAT = 1
Decided = tuple[int, list[str]]
"""A batch id, and the names of the files with the decisions of that batch."""
_LOST = "restore it from a backup; without one, delete it: the sinks' committed output is then assumed to be complete"


def check_sinks(graph: JobGraph, job_id: str, fence: Fence, config: JobConfig, *, batch: bool) -> None:
    """Called before each start of the query: fences off earlier starts, and checks that Spark's state matches the sinks.
    Spark logs a batch as committed after the sinks, so they may be one batch ahead. A batch job has no state, so nothing
    is compared. Raises SinkMismatch."""
    found = take_over_sinks(graph, job_id, fence)
    if batch or not fence.epoch:
        return
    home = Path(fence.directory)
    committed, begun = _batch(home, "commits"), _batch(home, "offsets")
    repeated = begun if begun == committed + 1 else None
    state = StateEpochs(
        directory=fence.directory,
        newest=committed if repeated is None else repeated,
        repeated=repeated,
        marks=read_marks(home),
    )
    marks, _ = matched_marks(graph, found, state, accept=accepts_sinks(config))
    decided = _read(home)[1]
    if decided[0] == repeated:
        FileDecisions(home / CALLS_FOLDER).check(decided[1])
    _write(home, marks, decided)


def note_output(spec: JobSpec, batch_id: int, with_output: Collection[str]) -> None:
    """Called before sinks commit a micro-batch, with the uids of those that have output in it."""
    fence = spec.fence
    if fence.epoch and with_output:
        home = Path(fence.directory)
        before = _read(home)
        in_files = spec.calls if spec.calls is not None and not spec.calls.address else None
        names = [] if in_files is None else in_files.file_decisions().names(spec.epoch_of(batch_id))
        after = moved_on(before[0], batch_id, with_output), (batch_id, names)
        if after != before:
            _write(home, *after)


def read_marks(home: Path) -> dict[str, Mark]:
    return _read(home)[0]


def _read(home: Path) -> tuple[dict[str, Mark], Decided]:
    path = home / NAME
    try:
        body = read_json(path, newest=_FORMAT, way_out=_LOST)
    except FileNotFoundError:
        return {}, (-1, [])
    stored: Any = body.get("sinks")
    try:
        marks = {uid: (str(ledger), int(last), int(before)) for uid, (ledger, last, before) in stored.items()}
        epoch, names = body.get("decided", (-1, []))
        return marks, (int(epoch), [str(name) for name in names])
    except (AttributeError, TypeError, ValueError) as error:
        raise corrupt(path, describe_cause(error), _LOST) from error


def _write(home: Path, marks: dict[str, Mark], decided: Decided) -> None:
    sinks = {uid: list(mark) for uid, mark in marks.items()}
    try:
        write_json(home / NAME, {"format": _FORMAT, "sinks": sinks, "decided": list(decided)})
    except OSError as error:
        raise CheckpointUnusable(
            f"{home / NAME} cannot be written",
            cause=describe_cause(error),
            way_out="free space or repair the disk, then start again",
            committed="the batch was not committed; running the program again repeats it",
        ) from error


def _batch(home: Path, folder: str) -> int:
    found = last_batch(home / "spark", folder)
    return -1 if found is None else found
