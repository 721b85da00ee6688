"""How many records a source may add to a micro-batch: no more than the steps downstream of it may have unfinished.

Runs on the driver, called by the offset planner. When a batch is planned, all unfinished inputs are in state, and the
durable call log tells how many there are. Everything else stays in the source.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from emberflow.durable.log import StoredCallLog
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.events.private_files import make_private_folder, write_private
from emberflow.plan.graphs.job_graph import JobGraph, StageKind

_WRITTEN_EVERY_S = 0.2


class SourceAdmission:
    """For one source. `log` is only read."""

    def __init__(self, limits: dict[str, int], log: StoredCallLog) -> None:
        self._limits = limits
        self._log = log

    def room(self) -> int:
        """Records that may be read now."""
        self._log.follow()
        held = self._log.held_inputs()
        return max(0, min(limit - held[uid] for uid, limit in self._limits.items()))


def limits_behind(spec: JobSpec, stage_id: int) -> dict[str, int]:
    """Steps downstream of a source that may park inputs, by uid: how many inputs of this source they may have unfinished."""
    found: dict[str, int] = {}
    for target in _behind(spec.graph, stage_id):
        node = spec.graph.stream_graph.node(spec.graph.stages[target].head)
        of_a_task = node.spec.traits.max_in_flight
        if of_a_task is not None:
            sources = sum(
                stage.kind is StageKind.SOURCE and target in _behind(spec.graph, stage.id)
                for stage in spec.graph.stages
            )
            found[node.uid] = max(1, of_a_task * spec.parallelism // max(sources, 1))
    return found


def _behind(graph: JobGraph, stage_id: int) -> set[int]:
    found: set[int] = set()
    left = [stage_id]
    while left:
        for item in graph.outputs_of(left.pop()):
            if item.target_stage not in found:
                found.add(item.target_stage)
                left.append(item.target_stage)
    return found


class PressureFile:
    """How long a source was held back, written by its planner for the job, which runs in another process."""

    def __init__(self, directory: str, stage_id: int) -> None:
        self._path = Path(directory) / f"source-{stage_id}.pressure"
        self._since_s: float | None = None
        self._total_s = 0.0
        self._written_s = 0.0

    def note(self, *, held: bool) -> None:
        """Called at every plan: whether the source is held back from now on."""
        now_s = time.monotonic()
        changed = held != (self._since_s is not None)
        if self._since_s is not None:
            self._total_s += now_s - self._since_s
        self._since_s = now_s if held else None
        if changed or (held and now_s - self._written_s >= _WRITTEN_EVERY_S):
            self._written_s = now_s
            self._write()

    def _write(self) -> None:
        part = self._path.with_suffix(f".{os.getpid()}")
        try:
            make_private_folder(self._path.parent)
            write_private(part, json.dumps(round(self._total_s * 1000)))
            part.replace(self._path)
        except OSError:
            pass  # Only a metric is lost.


def held_back_ms(directory: str) -> int:
    """The total of all sources of a job."""
    total = 0
    for path in Path(directory).glob("source-*.pressure"):
        try:
            total += int(path.read_text())
        except (OSError, ValueError):
            continue
    return total
