"""Calls of models and tools in the event log: how long they took, what they cost, how they ended, whether they were made or
answered from the call log. Only used while there is an event log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from emberflow.errors import describe_cause
from emberflow.events.agent_events import Event
from emberflow.operators.agents.calls.masked_errors import mask

if TYPE_CHECKING:
    from emberflow.operators.agents.execution import ActionExecution

CALL, REUSED = "call", "reused"
"""The kinds of entries."""


class CallEntry:
    """One call, from its start to its entry."""

    __slots__ = ("_arguments", "_call_id", "_event", "_execution", "_made", "_name")

    def __init__(
        self,
        execution: ActionExecution,
        name: str,
        call_id: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        event: Event,
    ) -> None:
        self._execution = execution
        self._event = event
        self._name = name
        attempt = 1 if execution.guards is None else execution.guards.attempt
        self._call_id = call_id if attempt == 1 else f"{call_id}@{attempt}"
        self._made = False
        # What a model wrote, or a program; never what was injected, which may be secret.
        given: Any = args[0] if args and args[0].__class__ is dict else kwargs
        self._arguments: dict[str, Any] = dict(given) if name.startswith("tool ") else {}

    def watched(self, make: Callable[[], Any]) -> Callable[[], Any]:
        """The function, which notes that it was called: otherwise the call is answered from the log."""

        def made() -> Any:
            self._made = True
            return make()

        return made

    async def ended(self, call: Awaitable[Any]) -> Any:
        """The result of the call."""
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        try:
            answer = await call
        except BaseException as error:
            self._write((now_s() - began_s) * 1000, error=describe_cause(error))
            raise
        self._write((now_s() - began_s) * 1000, answer)
        return answer

    def ended_now(self, call: Callable[[], Any]) -> Any:
        """The same for a blocking call."""
        clock = self._execution.run.scope.clock
        now_ms: Callable[[], int] = getattr(clock, "live_ms", clock.now_ms)
        began_ms = now_ms()
        try:
            answer = call()
        except BaseException as error:
            self._write(now_ms() - began_ms, error=describe_cause(error))
            raise
        self._write(now_ms() - began_ms, answer)
        return answer

    def _write(self, took_ms: float, answer: Any = None, error: str = "") -> None:
        execution = self._execution
        runtime = execution.run.runtime
        recorder = runtime.recorder
        if recorder is None:
            return
        if not error and answer.__class__ is dict and len(answer) == 1 and "error" in answer:
            # How the loop of a chat records a tool that failed.
            error = str(answer["error"])
        secrets = runtime.resources.secrets
        entry: dict[str, Any] = {"ms": round(took_ms)}
        usage: Any = getattr(answer, "usage", None)
        for name in ("prompt_tokens", "completion_tokens", "total_tokens", "cost"):
            amount: Any = getattr(usage, name, None)
            if amount:
                entry[name] = amount
        if self._arguments:
            entry["arguments"] = {
                name: mask(value, secrets) if isinstance(value, str) else value
                for name, value in self._arguments.items()
            }
        if error:
            entry["error"] = mask(error, secrets)
        event = Event(type=self._name, attributes=entry)
        event.id = self._call_id
        event.upstream_event_id = self._event.id
        event.upstream_action_name = execution.action.name
        recorder.call(execution.run, event, CALL if self._made else REUSED)
