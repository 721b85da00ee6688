"""Attempts of a guarded action: retry with backoff, and a timeout per attempt.

For all other code, all attempts together are one call of the action: it is parked, resumed and repeated as a whole. When
the action has failed permanently, its `Failure` is passed to its fallback or in an `ErrorEvent`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from emberflow.errors import EmberflowError, RecordedError
from emberflow.events.codecs import decode, encode
from emberflow.events.copies import copied_event
from emberflow.events.key_groups import stable_hash
from emberflow.events.stored_types import stored_type
from emberflow.operators.agents.calls.durable_calls import CallRecord, Recorded
from emberflow.operators.agents.calls.stored_errors import is_error_of
from emberflow.operators.agents.guards.error_kinds import is_final, log_failure
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.plan.agents.guards import Retry

if TYPE_CHECKING:
    from emberflow.operators.agents.execution import ActionExecution


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an action failed; a fallback finds it in `ctx.error`."""

    action: str
    error_type: str
    """The name of the exception's class."""
    message: str
    attempts: int = 1


class GaveUp(Exception):
    """The last of several attempts failed; `error` is its exception."""

    def __init__(self, error: BaseException, attempts: int) -> None:
        super().__init__(error, attempts)
        self.error = error
        self.attempts = attempts


def unwrapped(error: BaseException) -> tuple[BaseException, int]:
    """The exception that the action raised, and in how many attempts. A failure of the log counts as such, however the
    action wrapped it."""
    raised, attempts = (error.error, error.attempts) if isinstance(error, GaveUp) else (error, 1)
    return log_failure(raised) or raised, attempts


def message_of(error: BaseException) -> str:
    """The message on one line, without the name of the class, which is shown separately."""
    if isinstance(error, EmberflowError) and not isinstance(error, RecordedError):
        return error.message
    try:
        return " ".join((error.message if isinstance(error, RecordedError) else str(error)).split())
    except Exception as failure:
        return f"<str() raised {type(failure).__name__}>"


async def run_guarded(execution: ActionExecution) -> Any:
    """The action's result, after as many attempts as its retry policy allows."""
    guards, attempt = execution.action.guards, 1
    retry = guards.retry
    context = RunnerContext(execution)
    if retry is not None:
        execution.begin_attempt()
    while True:
        try:
            return await _attempt(execution, context, guards.timeout_ms)
        except Exception as error:
            if retry is None or attempt >= retry.attempts or not _again(error, retry):
                if execution.guards is not None and log_failure(error) is None:
                    execution.guards.withdraw_questions()
                if attempt == 1:
                    raise
                raise GaveUp(error, attempt) from error
        attempt += 1
        # Reverted at once and not when the next attempt starts: no effects of the failed one must be visible.
        execution.guarded().start_attempt(attempt)
        await asyncio.sleep(retry.delay_ms(attempt, jitter_share(execution.call_prefix, attempt)) / 1000)


def _again(error: Exception, retry: Retry) -> bool:
    return not is_final(error) and is_error_of(error, retry.on)


async def _attempt(execution: ActionExecution, context: RunnerContext, limit_ms: int | None) -> Any:
    if limit_ms is None:
        return await _result(execution, context)
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    timer = asyncio.timeout(limit_ms / 1000)
    try:
        async with timer:
            result = await _result(execution, context)
    except TimeoutError as error:
        # A timeout inside the action, such as a socket's, is reported unchanged.
        raise (_timed_out(limit_ms) if timer.expired() else error) from error
    # A blocking function cannot be interrupted, but must not count as having finished in time.
    if (now_s() - began_s) * 1000 > limit_ms:
        raise _timed_out(limit_ms)
    return result


async def _result(execution: ActionExecution, context: RunnerContext) -> Any:
    action = execution.action
    # A copy for each attempt: changes that one makes are not seen by the next.
    result = action.function(action.given(copied_event(execution.event)), context)
    # A synchronous function that returns an awaitable lacks its `async`; the check of the result reports that.
    return await result if action.awaits and inspect.isawaitable(result) else result


def _timed_out(limit_ms: int) -> TimeoutError:
    return TimeoutError(f"the action did not end within {limit_ms:,} ms")


def jitter_share(name: str, attempt: int) -> float:
    """In [0, 1); the same for the same action and attempt whenever it is repeated."""
    return stable_hash((name, attempt)) % 1_000_003 / 1_000_003


_PLAIN = (str, int, float, bool, bytes, type(None))


def apart(value: Any) -> Any:
    """An independent copy; an immutable value is its own copy."""
    return value if value.__class__ in _PLAIN else decode(encode(value))


class AttemptLog:
    """The log of an action that may be retried in the same process: changes that an attempt makes to an answer must not be
    seen by the next. If the engine keeps no log, it serves as a log that lasts as long as the action."""

    __slots__ = ("_known", "_log")

    def __init__(self, log: Recorded | None) -> None:
        self._log = log
        self._known: dict[str, CallRecord] = {}

    def find(self, call_id: str) -> CallRecord | None:
        found = self._known.get(call_id) if self._log is None else self._log.find(call_id)
        return None if found is None else replace(found, value=apart(found.value))

    async def write(self, record: CallRecord) -> None:
        record = replace(record, value=apart(record.value))
        if self._log is None:
            self._known[record.call_id] = record
        else:
            await self._log.write(record)

    def write_first(self, record: CallRecord) -> None:
        if self._log is None:
            self._known[record.call_id] = replace(record, value=apart(record.value))
        else:
            self._log.write_first(record)

    def write_now(self, record: CallRecord) -> None:
        record = replace(record, value=apart(record.value))
        if self._log is None:
            self._known[record.call_id] = record
        else:
            self._log.write_now(record)

    def forget(self, call_ids: Iterable[str]) -> None:
        if self._log is not None:
            self._log.forget(call_ids)
        for call_id in call_ids:
            self._known.pop(call_id, None)
