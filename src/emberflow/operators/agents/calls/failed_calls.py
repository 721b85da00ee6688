"""Calls of an action that raised. If the action fails, they are made again when it is repeated, unless something was done
about them that has been paid for: then they stay recorded, because the repeated action must take the same way.

Used by `durable_calls.py`, which knows when calls begin and end. No I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberflow.operators.agents.calls.durable_calls import CallRecord

Asker = Any
"""The task that asks for a call, None on a thread without an event loop. What a task does after a call of its own has
raised may depend on that; what other tasks do meanwhile does not."""


def current_asker() -> Asker:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def loop_time_s() -> float:
    """0 on a thread without an event loop."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0


@dataclass(slots=True, eq=False)
class FailedCall:
    """A call that raised or that was canceled, or an action whose failure was handled."""

    call_ids: list[str]
    """What is recorded about it."""
    askers: tuple[Asker, ...]
    """Those that learn of the failure: of the call itself, and of the branches that it belongs to."""
    given_up: CallRecord | None = None
    """Of a canceled call, which is recorded only if it stays: it may have been the action, or the job, that was canceled."""
    stays: bool = False
    """Whether a call that came after it is recorded."""


@dataclass(slots=True)
class CallPosition:
    """Where a call is among the calls of its action."""

    askers: tuple[Asker, ...]
    after: list[FailedCall] = field(default_factory=list[FailedCall])
    """Failures that its asker may have known when it asked for the call."""
    began_s: float = 0.0

    def seconds(self) -> float:
        """How long ago it was asked for."""
        return loop_time_s() - self.began_s

    def recorded(self) -> list[CallRecord]:
        """The call is recorded: had one of those failures not occurred, it would perhaps not have been made. Returns what
        must be recorded before it."""
        first: list[CallRecord] = []
        for failed in self.after:
            if not failed.stays and failed.given_up is not None:
                first.append(failed.given_up)
            failed.stays = True
        return first


def ids_of(failed: Iterable[FailedCall]) -> list[str]:
    """The records of those that may be forgotten."""
    return [call_id for item in failed if not item.stays for call_id in item.call_ids]
