"""What an engine provides to the operators of a task, as one object.

The operator core has no clock, no threads and no I/O: it uses those of the host. Engines create a `HostServices` per task
and pass it to the stage; operators receive it in `Operator.connect`, before `open`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from emberflow.event_time.clock import Clock
from emberflow.operators.admission.gate import Ledgers
from emberflow.operators.agents.calls.durable_calls import CallLog
from emberflow.operators.agents.guards.questions import Approvals


class CallService(Protocol):
    """Runs coroutines for operators. `done` is called on the operator's own thread, never concurrently with it."""

    def start(
        self,
        limiter: str,
        capacity: int,
        call: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
    ) -> None: ...

    async def in_thread(self, function: Callable[[], Any], threads: int) -> Any:
        """Runs a blocking function outside of the event loop, in one of at most `threads` threads."""
        ...

    def wait_for(self, call: Callable[[], Any]) -> Any:
        """Runs a coroutine to its end while the calling thread waits, and returns its result."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HostServices:
    """The services of one task's host."""

    clock: Clock
    batch: bool = False
    """Whether the job runs in BATCH mode, where some steps only emit their final results."""
    in_turn: bool = False
    """Whether a task of a keyed stage serves one group of keys after another. What is chained behind the keyed step then sees
    event time advance between micro-batches only: the watermark that one group has reached may be ahead of the next one's records."""
    reads_all_tasks: bool = True
    """Whether a task that is restarted finds what all tasks of its step had stored."""
    calls: CallService | None = None
    """None if the stage has no step that waits for calls."""
    log: CallLog | None = None
    """The durable call log; None if the job has no checkpoint directory."""
    approvals: Approvals | None = None
    """Where people find questions; None if the job has no checkpoint directory."""
    ledgers: Ledgers | None = None
    """The limits of models that all tasks of the job share; None if this task has its own."""
