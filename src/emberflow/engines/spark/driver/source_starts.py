"""Where the sources of a Spark job start: decided once, and stored before the first micro-batch is planned.

A first micro-batch that did not commit is repeated from these positions, whatever the sources would report by then: files
may have been added, the parallelism may have changed. The format is
`{"format": 2, "sources": {uid: [[position, ended], …]}}`. Version 1 had numbers of channels only:
`{"format": 1, "channels": {uid: number}}`, originally without the envelope.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeGuard

from emberflow.engines.spark.driver.savepoints import last_batch
from emberflow.errors import CheckpointUnusable
from emberflow.events.private_files import make_folders
from emberflow.events.stored_files import corrupt, parse_json, read_bytes, write_json
from emberflow.plan.graphs.job_graph import JobGraph, StageKind, source_of
from emberflow.plan.graphs.stage_channels import new_sources
from emberflow.plan.job_contract import JobConfig
from emberflow.savepoints.restore import SavepointStart

NAME = "channels.json"
FORMAT_VERSION = 2
_LOST = (
    "restore it from a backup; without one, start with an empty checkpoint directory and another output folder, from the"
    " last savepoint if there is one"
)

Starts = dict[str, list[list[Any]]]
"""uid -> [position, ended] of each channel"""


def source_starts(graph: JobGraph, config: JobConfig, home: Path, start: SavepointStart | None) -> Starts:
    """The start positions of every source, by uid. A job with a checkpoint directory keeps those of its first start."""
    stored = _read(home, graph) if config.checkpoint_dir is not None else {}
    known = dict(stored)
    for uid, source in start.sources.items() if start is not None else ():
        known[uid] = _as_stored(zip(source.positions, source.ended, strict=True))
        if stored.get(uid, known[uid]) != known[uid]:
            raise CheckpointUnusable(
                f"the job in {home} started from another savepoint before, and has no checkpoint yet",
                way_out="start it from that savepoint again, or with an empty checkpoint directory",
                committed="nothing was changed",
            )
    for uid, positions in new_sources(graph, config.parallelism, known).items():
        known[uid] = [[position, False] for position in positions]
    if config.checkpoint_dir is not None and known != stored:
        make_folders(home)
        write_json(home / NAME, {"format": FORMAT_VERSION, "sources": known})
    return known


def _as_stored(pairs: Any) -> list[list[Any]]:
    return json.loads(json.dumps([list(pair) for pair in pairs]))


def _read(home: Path, graph: JobGraph) -> Starts:
    path = home / NAME
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        begun = last_batch(home / "spark", "offsets")
        if begun is None:
            return {}
        raise corrupt(path, f"it is missing, although micro-batch {begun} has started", _LOST) from None
    if b'"format"' in data and (b'"sources"' in data or b'"channels"' in data):
        found = parse_json(path, data, newest=FORMAT_VERSION, way_out=_LOST)
    else:
        found = {"channels": _without_format(path, data)}
    sources, counts = found.get("sources"), found.get("channels")
    if isinstance(sources, dict) and _are_starts(sources):
        return sources
    if isinstance(counts, dict) and _are_counts(counts):
        return _counted(graph, counts, home)
    raise corrupt(path, "it does not contain the first positions of the sources", _LOST)


def _are_starts(found: dict[str, Any]) -> TypeGuard[Starts]:
    return all(
        isinstance(pairs, list) and pairs and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        for pairs in found.values()
    )


def _are_counts(found: dict[str, Any]) -> TypeGuard[dict[str, int]]:
    return all(type(count) is int and count > 0 for count in found.values())


def _without_format(path: Path, data: bytes) -> Any:
    """As written before there was an envelope: only the numbers."""
    wrapped = b'{"format": 1, "channels": ' + data + b"}" if data.strip(b"\0 \r\n\t") else b""
    return parse_json(path, wrapped, newest=FORMAT_VERSION, way_out=_LOST)["channels"]


def _counted(graph: JobGraph, counts: dict[str, int], home: Path) -> Starts:
    """Version 1 has numbers only. Once a batch was committed, Spark has the positions; before that, ask the sources."""
    if last_batch(home / "spark", "commits") is not None:
        return {uid: [[None, False] for _ in range(count)] for uid, count in counts.items()}
    found: Starts = {}
    for stage in graph.stages:
        uid = graph.stream_graph.node(stage.head).uid
        if stage.kind is StageKind.SOURCE and uid in counts:
            positions = source_of(graph, stage).source.start(counts[uid])
            if len(positions) != counts[uid]:
                raise CheckpointUnusable(
                    f"the source {uid!r} had {counts[uid]} channels when the job in {home} was started, "
                    f"and has {len(positions)} now",
                    way_out="start with an empty checkpoint directory: no micro-batch was committed in this one",
                )
            found[uid] = [[position, False] for position in positions]
    return found
