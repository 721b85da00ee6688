"""The manifest of a checkpoint directory: which job it belongs to, and whether a program still fits it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from emberflow.connectors.commit_ledger import sync_folder
from emberflow.errors import CheckpointUnusable, CorruptData, ProgramChanged, describe_cause
from emberflow.plan.job import JobConfig, new_job_id
from emberflow.plan.job_graph import JobGraph

FORMAT_VERSION = 1
NAME = "emberflow.json"
STARTS = "starts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    format: int
    job_id: str
    engine: str
    parallelism: int
    max_parallelism: int
    steps: dict[str, str]
    """uid -> kind of every step that has something to remember: sources, keyed steps, sinks."""


def open_directory(graph: JobGraph, config: JobConfig, engine: str) -> Manifest:
    """Creates or checks the job's checkpoint directory. Without one, the manifest lives as long as the job."""
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
        directory.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomically(path, json.dumps(asdict(fresh), indent=2).encode())
            return fresh
        text = path.read_text()
        if not os.access(directory, os.W_OK):
            raise PermissionError(f"{directory} is not writable")
    except OSError as error:
        raise CheckpointUnusable(
            f"the checkpoint directory {directory} cannot be used",
            cause=describe_cause(error),
            way_out="choose a directory that this user may read and write (checkpoint_dir=, --checkpoint-dir)",
        ) from error
    try:
        stored = Manifest(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise CorruptData(f"{path} is not a manifest of emberflow", cause=describe_cause(error)) from error
    _check(stored, fresh, directory)
    return stored


def next_start(directory: Path) -> int:
    """Counts how often the job in a directory was started: what an earlier start left half done is told by it."""
    path = directory / STARTS
    try:
        number = int(path.read_text()) + 1 if path.exists() else 1
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, str(number).encode())
    except (OSError, ValueError) as error:
        raise CheckpointUnusable(
            f"{path} cannot be read or written",
            cause=describe_cause(error),
            way_out="the file holds one number, how often the job was started; mend it or the disk",
        ) from error
    return number


def remembering_steps(graph: JobGraph) -> dict[str, str]:
    return {
        node.uid: node.spec.kind
        for node in graph.stream_graph.nodes
        if node.spec.keyed or node.spec.kind in ("source", "sink")
    }


def _check(stored: Manifest, fresh: Manifest, directory: Path) -> None:
    if stored.format > FORMAT_VERSION:
        raise CheckpointUnusable(
            f"{directory} was written by a newer version of emberflow (format {stored.format})",
            way_out="update emberflow",
        )
    if stored.engine != fresh.engine:
        raise CheckpointUnusable(
            f"{directory} was written by the engine {stored.engine!r}, this job runs on {fresh.engine!r}",
            way_out="use a directory per engine",
        )
    missing = {uid: kind for uid, kind in stored.steps.items() if fresh.steps.get(uid) != kind}
    added = {uid: kind for uid, kind in fresh.steps.items() if stored.steps.get(uid) != kind}
    if missing or added:
        raise ProgramChanged(
            f"the program no longer matches the checkpoint in {directory}: "
            f"{_named('gone', missing)}{'; ' if missing and added else ''}{_named('new', added)}",
            way_out="start with an empty checkpoint directory, or give steps the uid() they had",
            committed="the checkpoint was not touched",
        )
    if stored.max_parallelism != fresh.max_parallelism:
        raise ProgramChanged(
            f"the maximum parallelism was {stored.max_parallelism} when the checkpoint in {directory} was made, "
            f"now it is {fresh.max_parallelism}",
            way_out=f"call env.set_max_parallelism({stored.max_parallelism}): it is fixed for the life of the state",
            committed="the checkpoint was not touched",
        )


def _named(what: str, steps: dict[str, str]) -> str:
    return "" if not steps else f"{what}: " + ", ".join(f"{kind} {uid!r}" for uid, kind in steps.items())


def write_atomically(path: Path, data: bytes) -> None:
    """The file appears whole or not at all, also after a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)
