"""The manifest of a checkpoint directory: which job it belongs to, and whether a program is compatible with it."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from emberflow.errors import CheckpointUnusable, ProgramChanged, describe_cause
from emberflow.events.private_files import make_folders, written_by_others
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, read_json, write_json
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.graphs.stream_graph import of_first_form
from emberflow.plan.job_contract import JobConfig, new_job_id
from emberflow.plan.specs import SinkSpec, SourceSpec
from emberflow.plan.stored_kinds import continues, recorded

FORMAT_VERSION = 2
"""Of everything in the directory: 1 named classes in state and calls by their module path, 2 uses stable names."""
NAME = "emberflow.json"
STARTS = "starts"
_LOST = (
    "restore it from a backup; without one, start with an empty checkpoint directory and another output folder, from the"
    " last savepoint if there is one"
)
_NUMBER_LOST = (
    "write one number into it that is larger than the number of starts so far, 1000000 say, and start again:"
    " nothing is lost"
)
# Written by jobs that have started: patterns of files inside the directory.
_TRACES = ("local/chk-*.ckpt", "state.db", "spark/offsets/*", "calls/*", "client/*")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    format: int
    job_id: str
    engine: str
    parallelism: int
    max_parallelism: int
    steps: dict[str, str]
    """uid -> kind of every step that keeps something across restarts: sources, keyed steps, sinks."""


def open_directory(graph: JobGraph, config: JobConfig, engine: str) -> Manifest:
    """Creates or checks the job's checkpoint directory. Without one, the manifest exists only as long as the job."""
    fresh = Manifest(
        format=FORMAT_VERSION,
        job_id=new_job_id(),
        engine=engine,
        parallelism=config.parallelism,
        max_parallelism=config.max_parallelism,
        steps=remembering_steps(graph),
    )
    if config.checkpoint_dir is None:
        return fresh
    directory = Path(config.checkpoint_dir)
    path = directory / NAME
    try:
        make_folders(directory)
        _warn_if_open(directory)
        if not path.exists():
            if (trace := trace_of_a_job(directory)) is not None:
                raise corrupt(path, f"it is missing, but a job has left {trace}", _LOST)
            # Written first: where a manifest exists, the number of starts is never missing.
            write_starts(directory, 0)
            write_json(path, asdict(fresh))
            return fresh
        if not os.access(directory, os.W_OK):
            raise PermissionError(f"{directory} is not writable")
    except OSError as error:
        raise CheckpointUnusable(
            f"the checkpoint directory {directory} cannot be used",
            cause=describe_cause(error),
            way_out="choose a directory that this user may read and write (checkpoint_dir=, --checkpoint-dir)",
        ) from error
    stored = read_manifest(directory)
    _check(stored, fresh, directory)
    steps = {uid: recorded(kind, fresh.steps[uid]) for uid, kind in stored.steps.items()}
    if stored.format < FORMAT_VERSION or steps != stored.steps:
        # Before anything is written that the previous version could not read.
        stored = replace(stored, format=FORMAT_VERSION, steps=steps)
        write_json(path, asdict(stored))
    return stored


def _warn_if_open(directory: Path) -> None:
    """The contents are not readable by others, but state is pickled: a user who can create files there can run code in
    the job."""
    if (how := written_by_others(directory)) is not None:
        _log.warning(
            "other users can write to the checkpoint directory %s (%s), and thereby run code in this job: "
            "make this user its owner, and remove the write permission of others (chmod go-w)",
            directory,
            how,
        )


def read_manifest(directory: Path) -> Manifest:
    """Raises FileNotFoundError, CorruptData and CheckpointUnusable."""
    path = directory / NAME
    body = read_json(path, newest=FORMAT_VERSION, way_out=_LOST)
    try:
        return Manifest(**body)
    except TypeError as error:
        raise corrupt(path, describe_cause(error), _LOST) from error


def trace_of_a_job(directory: Path) -> str | None:
    """A file that shows that a job has started in the directory, relative to it."""
    for pattern in _TRACES:
        for found in directory.glob(pattern):
            return str(found.relative_to(directory))
    return None


def last_start(directory: Path) -> int:
    """The fencing epoch of the last start of the job in a directory. If two starts worked on the same epoch, the later one
    counts, so the number must never decrease. Owners take the next one: `engines/job/ownership.py`."""
    path = directory / STARTS
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        if (directory / NAME).exists():
            raise corrupt(path, f"it is missing, but {NAME} exists", _NUMBER_LOST) from None
        return 0
    if data.strip().isdigit():
        return int(data)  # Written by a version without checksums, or by hand.
    number = parse_json(path, data, newest=FORMAT_VERSION, way_out=_NUMBER_LOST).get("starts")
    if type(number) is not int or number < 0:
        raise corrupt(path, "it does not contain a number of starts", _NUMBER_LOST)
    return number


def write_starts(directory: Path, number: int) -> None:
    """Raises OSError."""
    write_json(directory / STARTS, {"format": FORMAT_VERSION, "starts": number})


def remembering_steps(graph: JobGraph) -> dict[str, str]:
    return {
        node.uid: node.spec.stored_kind
        for node in graph.stream_graph.nodes
        if node.spec.keyed or isinstance(node.spec, SourceSpec | SinkSpec)
    }


def _check(stored: Manifest, fresh: Manifest, directory: Path) -> None:
    if stored.engine != fresh.engine:
        raise CheckpointUnusable(
            f"{directory} was written by the engine {stored.engine!r}, this job runs on {fresh.engine!r}",
            way_out="use a directory per engine",
        )
    kept = {uid for uid, kind in fresh.steps.items() if continues(stored.steps.get(uid), kind)}
    missing = {uid: kind for uid, kind in stored.steps.items() if uid not in kept}
    added = {uid: kind for uid, kind in fresh.steps.items() if uid not in kept}
    if missing or added:
        raise ProgramChanged(
            f"the program no longer matches the checkpoint in {directory}: "
            f"{_named('gone', missing)}{'; ' if missing and added else ''}{_named('new', added)}",
            way_out=of_first_form(missing)
            or "start with an empty checkpoint directory, or give steps the uid() they had",
            committed="the checkpoint was not changed",
        )
    if stored.max_parallelism != fresh.max_parallelism:
        raise ProgramChanged(
            f"the maximum parallelism was {stored.max_parallelism} when the checkpoint in {directory} was written, "
            f"now it is {fresh.max_parallelism}",
            way_out=f"call env.set_max_parallelism({stored.max_parallelism}): it cannot change for existing state",
            committed="the checkpoint was not changed",
        )


def _named(what: str, steps: dict[str, str]) -> str:
    return "" if not steps else f"{what}: " + ", ".join(f"{kind} {uid!r}" for uid, kind in steps.items())
