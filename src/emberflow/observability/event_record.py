"""The records and settings of the event log; data only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event
from emberflow.events.batch import Origin

STANDARD = "STANDARD"
VERBOSE = "VERBOSE"


@dataclass(slots=True)
class EventRecord:
    """One thing that happened in an agent's run: an event that was sent, an action that failed, a call of a model or tool."""

    time_ms: int
    agent: str
    key: Any
    run_id: str
    event: Event | None
    kind: str
    """`event`, `error`, `call`, or `reused` for a call that was answered from the call log."""
    error: str = ""
    action: str = ""
    level: str = ""
    """The level of the event's type; empty: that of the log."""
    origin: Origin | None = None
    """The event of another agent that caused this one."""
    secrets: Collection[str] = ()
    """Values that are masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogSettings:
    """Where and how much is written. The three `max_` limits of a line apply to `STANDARD` only."""

    directory: str
    level: str
    max_string: int
    max_items: int
    max_depth: int
    max_file_bytes: int
    max_files: int
    """Number of files kept per process and agent; the oldest is removed first."""

    def check(self) -> None:
        """Raises InvalidArgument if no log can be opened with these settings."""
        if self.level not in (STANDARD, VERBOSE):
            raise InvalidArgument(
                f"an event log of level {self.level!r} cannot be opened",
                way_out=f"use {STANDARD} or {VERBOSE}; with OFF no log is opened at all",
            )
        if not self.directory or "://" in self.directory:
            raise InvalidArgument(
                f"the event log cannot be written to {self.directory!r}",
                way_out="give the path of a directory that every worker can write to, local or mounted",
            )
        for name in ("max_string", "max_items", "max_depth", "max_file_bytes", "max_files"):
            if getattr(self, name) < 1:
                raise InvalidArgument(
                    f"{name} of the event log is {getattr(self, name)}; it must be at least 1"
                )
