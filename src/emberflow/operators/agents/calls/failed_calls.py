"""Calls of an action that raised. If the action fails, they are made again when it is repeated, unless something was done
about them that has been paid for: then they stay recorded, because the repeated action must take the same way.

Used by `durable_calls.py`, which knows when calls begin and end. No I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Asker = Any
"""The task that asks for a call, None on a thread without an event loop. What a task does after a call of its own has
raised may depend on that; what other tasks do meanwhile does not."""


def current_asker() -> Asker:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


@dataclass(slots=True, eq=False)
class FailedCall:
    """A call that raised, or an action whose failure was handled."""

    call_ids: list[str]
    """What is recorded about it."""
    askers: tuple[Asker, ...]
    """Those that learn of the failure: of the call itself, and of the branches that it belongs to."""
    stays: bool = False
    """Whether a call that came after it is recorded."""


@dataclass(slots=True)
class CallPosition:
    """Where a call is among the calls of its action."""

    askers: tuple[Asker, ...]
    after: list[FailedCall] = field(default_factory=list[FailedCall])
    """Failures that its asker may have known when it asked for the call."""

    def recorded(self) -> None:
        """The call has an answer: had one of those failures not occurred, it would perhaps not have been made."""
        for failed in self.after:
            failed.stays = True


def ids_of(failed: Iterable[FailedCall]) -> list[str]:
    """The records of those that may be forgotten."""
    return [call_id for item in failed if not item.stays for call_id in item.call_ids]
