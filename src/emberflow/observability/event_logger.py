"""The event log of an agent through Python's `logging`, instead of files: the option `eventLoggerType`."""

from __future__ import annotations

import json
import logging

from emberflow.observability.event_json import EventJson
from emberflow.observability.event_record import EventLogSettings, EventRecord

_logger = logging.getLogger("emberflow.event_log")


class EventLogger:
    """Logs each record at once, at level INFO; has the methods of `EventLog`."""

    def __init__(self, settings: EventLogSettings, *, pretty: bool = False) -> None:
        self._json = EventJson(settings)
        self._pretty = pretty

    def record(self, record: EventRecord) -> None:
        """Logs a record as one line of JSON, or as several indented ones."""
        if not _logger.isEnabledFor(logging.INFO):
            return
        line = self._json.line(record).decode().rstrip("\n")
        if self._pretty:
            line = json.dumps(json.loads(line), indent=2, ensure_ascii=False)
        _logger.info("%s", line)

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        """The handlers belong to the program."""
