"""Sinks at the start of a job: fences off earlier starts, and compares what sinks have committed with the job's state.

A sink ignores an epoch that it has already committed. So state that is older than its sinks would lose output, and state
that is newer than its sinks has lost some: both are rejected. A *mark* is what state knows about a sink: which ledger it
has, and the last two epochs with output for it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from emberflow.connectors.sink import Committed, sink_failed
from emberflow.errors import InvalidArgument, SinkMismatch, describe_cause
from emberflow.events.fence import Fence
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.job_contract import JobConfig
from emberflow.plan.specs import SinkSpec

_log = logging.getLogger("emberflow")

Mark = tuple[str, int, int]
"""A ledger, the last epoch with output for the sink, the one before that; -1 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEpochs:
    """How far a job's state has progressed."""

    directory: str
    newest: int
    """The newest epoch that a sink may have committed; -1 without state."""
    repeated: int | None
    """The epoch whose output is committed again, if any: a sink may not have it yet."""
    marks: Mapping[str, Mark] = field(default_factory=dict[str, Mark])


def newest_start(graph: JobGraph, job_id: str) -> int:
    """The largest fencing epoch that the job's sinks know. It is ahead of the checkpoint directory if a copy of the
    directory was started: the state then decides whether this directory is the right one, not the number of its starts."""
    found = 0
    for node in graph.sinks:
        if isinstance(node.spec, SinkSpec) and not node.spec.sink.to_client:
            try:
                found = max(found, node.spec.sink.newest_start(job_id, node.uid))
            except BaseException as error:
                raise sink_failed(node.name, "open", error) from error
    return found


def take_over_sinks(graph: JobGraph, job_id: str, fence: Fence) -> dict[str, Committed]:
    """From now on, an earlier start of the job cannot make anything visible, whatever its process does. Returns what the
    sinks have committed, by uid; sinks that do not know are omitted."""
    found: dict[str, Committed] = {}
    for node in graph.sinks:
        if isinstance(node.spec, SinkSpec) and not node.spec.sink.to_client:
            try:
                committed = node.spec.sink.take_over(job_id, node.uid, fence.epoch)
            except BaseException as error:
                raise sink_failed(node.name, "open", error) from error
            if committed is not None:
                found[node.uid] = committed
    return found


def finish_sinks(graph: JobGraph, job_id: str) -> None:
    """After a job that cannot be continued: its sinks keep nothing but results."""
    for node in graph.sinks:
        if isinstance(node.spec, SinkSpec) and not node.spec.sink.to_client:
            try:
                node.spec.sink.finished(job_id, node.uid)
            except Exception as error:
                # The output is complete.
                _log.warning("sink %r could not clean up: %s", node.name, describe_cause(error))


def accepts_sinks(config: JobConfig) -> bool:
    """The option `accept_sinks`: continue although a sink has lost output."""
    wanted = config.options.get("accept_sinks", False)
    if not isinstance(wanted, bool):
        raise InvalidArgument(f"the option 'accept_sinks' must be True or False, not {wanted!r}")
    return wanted or bool(os.environ.get("EMBERFLOW_ACCEPT_SINKS"))


def matched_marks(
    graph: JobGraph, found: Mapping[str, Committed], state: StateEpochs, *, accept: bool
) -> tuple[dict[str, Mark], set[str]]:
    """The marks to continue with, and the uids of sinks whose lost output was accepted. Raises SinkMismatch."""
    nodes = {node.uid: node for node in graph.sinks}
    marks: dict[str, Mark] = {}
    given_up: set[str] = set()
    for uid, committed in found.items():
        if committed.epoch > state.newest:
            raise _state_is_older(nodes[uid], committed, state)
        mark = state.marks.get(uid)
        if mark is not None and not _belongs(mark, committed, state.repeated):
            if not accept:
                raise _sink_is_older(nodes[uid], mark, committed, state)
            given_up.add(uid)
            mark = None
        if mark is None or mark[1] < 0:
            # A mark without output is not bound to a ledger: new output goes to the current one.
            mark = (committed.ledger, committed.epoch, committed.epoch)
        marks[uid] = mark
    return marks, given_up


def _belongs(mark: Mark, committed: Committed, repeated: int | None) -> bool:
    ledger, last, before = mark
    if last < 0:
        return True  # Nothing was ever written to it.
    allowed = {last, before} if last == repeated else {last}
    return ledger == committed.ledger and committed.epoch in allowed


def moved_on(marks: dict[str, Mark], epoch: int, with_output: Collection[str]) -> dict[str, Mark]:
    """The marks after an epoch's output has been prepared for some sinks."""
    return {
        uid: (mark[0], epoch, mark[1]) if uid in with_output and epoch > mark[1] else mark
        for uid, mark in marks.items()
    }


def _state_is_older(node: StreamNode, committed: Committed, state: StateEpochs) -> SinkMismatch:
    what = f"ends with epoch {state.newest}" if state.newest >= 0 else "is gone"
    return SinkMismatch(
        f"the job's state does not match what {_named(node)} has committed: the sink is at epoch "
        f"{committed.epoch}, the state in {state.directory} {what}",
        cause="files of the checkpoint directory were deleted, corrupted or restored from an older copy",
        way_out="restore the checkpoint directory as it was; without it, start over with an empty checkpoint directory and "
        "another output folder, which produces all output again, or from a savepoint",
        committed="nothing was changed; continuing would lose the output between the two",
    )


def _sink_is_older(node: StreamNode, mark: Mark, committed: Committed, state: StateEpochs) -> SinkMismatch:
    if committed.ledger != mark[0]:
        cause = (
            "the folder or its .emberflow folder was emptied or deleted, or the program names a different one"
        )
        at = "does not have the record of what this job has committed"
    else:
        cause = "the folder was restored from an older copy, or files of its .emberflow folder were deleted"
        at = f"is at epoch {committed.epoch}"
    return SinkMismatch(
        f"{_named(node)} {at}; according to the state in {state.directory} its last output is that of epoch {mark[1]}",
        cause=cause,
        way_out="restore the sink's folder; or, to write only new output and accept the loss of the earlier one, "
        'call env.set_option("accept_sinks", True) or use --accept-sinks',
        committed="nothing was changed",
    )


def _named(node: StreamNode) -> str:
    """With its place in the program, which identifies a sink without a name."""
    place = node.spec.sink.describe() if isinstance(node.spec, SinkSpec) else node.name
    return f"sink {node.name!r}" + ("" if place == node.name else f" ({place})")
