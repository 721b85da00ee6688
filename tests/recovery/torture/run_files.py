"""The folder of one run: where its parts are, and what is read from them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from emberflow.testing import read_committed
from tests.recovery.torture.judge import Call, Cause, Run

_SHOWS_AFTER_S = 3.0
"""A record that could not be written in the background fails the micro-batch when that ends, and Spark then ends the worker:
calls in flight there at that moment are made again."""


class RunFiles:
    """`disk` contains what the job writes through the product; it may be a small separate file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.checkpoints = self.disk / "checkpoints"
        self.out = self.disk / "out"
        self.record = folder / "calls"
        self.finished = folder / "finished"
        self.faults = folder / "faults.json"
        self.injected = folder / "injected"
        self.settings = folder / "settings.json"
        self.temporary = folder / "tmp"
        self.input_files = folder / "input"
        self.aimed = folder / "aimed"
        for path in (self.disk, self.temporary):
            path.mkdir(parents=True, exist_ok=True)

    def processes(self) -> int:
        """How many Python processes the job has had so far; each one leaves a file for its stack."""
        return sum(name.startswith("stack-") for name in os.listdir(self.folder))

    def owner(self) -> int | None:
        """The process that owns the checkpoint directory, or owned it last."""
        try:
            return json.loads((self.checkpoints / "owners" / "lock").read_text())["pid"]
        except (OSError, ValueError, KeyError):
            return None

    def hits(self) -> list[dict[str, Any]]:
        """Kills by the shim, at the planned step."""
        return _lines(self.aimed)

    def trace(self) -> set[str]:
        """All operations on files of the job, if the shim was configured to record them."""
        return {item["step"] for item in _lines(self.folder / "trace")}

    def outputs(self) -> list[tuple[Any, ...]]:
        return read_committed(self.out)

    def calls(self) -> list[Call]:
        received: dict[str, dict[str, Any]] = {}
        for entry in _lines(self.record):
            if "outcome" in entry:
                entry["answered_at"] = entry["t"]
            # The entry written when it was answered adds the outcome; the time remains that of its arrival.
            received[entry["id"]] = {**entry, **received.get(entry["id"], {})}
        return [
            Call(
                at=entry["t"],
                prompt=entry["prompt"],
                idempotency_key=entry.get("idempotency_key"),
                outcome=entry.get("outcome"),
                answered_at=entry.get("answered_at"),
                kind=entry["kind"],
            )
            for entry in received.values()
        ]

    def run(self, causes: list[Cause]) -> Run:
        failed_writes = [
            Cause(begin=item["t"], end=item["t"] + _SHOWS_AFTER_S, what="disk error")
            for item in _lines(self.injected)
        ]
        return Run(
            outputs=self.outputs(),
            calls=self.calls(),
            finished=[(entry["t"], entry["prompt"]) for entry in _lines(self.finished)],
            causes=[*causes, *failed_writes],
        )


def _lines(file: Path) -> list[dict[str, Any]]:
    """A last line without a line break was truncated by a kill."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


class Progress:
    """How many different calls have reached the model server, read from the end of its record."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._position = 0
        self._prompts: set[str] = set()

    def calls(self) -> int:
        if self._record.exists():
            with self._record.open("rb") as file:
                file.seek(self._position)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._position += len(whole)
            self._prompts.update(
                entry["prompt"] for line in whole.splitlines() if "prompt" in (entry := json.loads(line))
            )
        return len(self._prompts)
