"""Records and settings for the tests of the event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from emberflow.events.agent_events import Event
from emberflow.observability.event_log import EventLogSettings, EventRecord

NEW_YEAR_MS = 1_767_225_600_000


def settings(directory: Path | str, **changes: Any) -> EventLogSettings:
    values: dict[str, Any] = {
        "directory": str(directory),
        "level": "STANDARD",
        "max_string": 2_000,
        "max_items": 20,
        "max_depth": 5,
        "max_file_bytes": 64 * 1024 * 1024,
        "max_files": 10,
    }
    return EventLogSettings(**{**values, **changes})


def record(
    type: str = "Scored",
    id: str = "e1",
    after_ms: int = 0,
    run: str = "r1",
    key: Any = "k",
    **attributes: Any,
) -> EventRecord:
    event = Event(type, attributes, id=id)
    return EventRecord(NEW_YEAR_MS + after_ms, "scorer", key, run, event, "event")


def error(
    text: str, *, action: str = "score", id: str = "e1", after_ms: int = 0, run: str = "r1"
) -> EventRecord:
    return EventRecord(
        NEW_YEAR_MS + after_ms, "scorer", "k", run, Event("Scored", {}, id=id), "error", text, action
    )


def lines_below(directory: Path) -> list[dict[str, Any]]:
    """Everything written, file by file."""
    return [
        json.loads(line)
        for file in sorted(directory.rglob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]
