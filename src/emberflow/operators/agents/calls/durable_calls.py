"""Durable calls: the answer of a finished call is found again when its action is repeated.

A call is identified by its position: step, run, task of the run, number within the action. The record also contains the
function and a digest of its arguments, so that changed code is detected. The log itself belongs to the engine.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from emberflow.errors import CallLogFailed, EmberflowError, InvalidArgument, NotSerializable
from emberflow.events.codecs import decode, encode
from emberflow.events.copies import copied
from emberflow.events.identity import DIGITS, PLAIN
from emberflow.events.run_ids import CallId, format_call
from emberflow.events.stored_types import stored_type
from emberflow.operators.agents.calls.call_descriptions import digest_of, name_of, shown_call
from emberflow.operators.agents.calls.failed_calls import (
    Asker,
    CallPosition,
    FailedCall,
    current_asker,
    ids_of,
    loop_time_s,
)
from emberflow.operators.agents.calls.masked_errors import mask
from emberflow.operators.agents.calls.replay import Replay
from emberflow.operators.agents.calls.stored_errors import StoredError, revived, stored

_PATIENCE_S = 3_600.0
_DEEPEST = 24
"""Branches within branches: chats of agents that are called by agents."""

STARTED, RETURNED, RAISED, GIVEN_UP = "started", "returned", "raised", "given up"
"""Given up: the action canceled the call, by a time limit of its own for example, and went on."""


@stored_type()
@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call. `value` is its return value, or the exception it raised, as a `StoredError`."""

    call_id: str
    function: str
    arguments: str
    shown: str
    outcome: str = STARTED
    value: Any = None


class Recorded(Protocol):
    """The answers of calls."""

    def find(self, call_id: str) -> CallRecord | None: ...

    async def write(self, record: CallRecord) -> None:
        """Returns when the record is durable."""
        ...

    def write_first(self, record: CallRecord) -> None:
        """Returns at once; the record is durable before any that is written later."""
        ...

    def write_now(self, record: CallRecord) -> None:
        """The same for synchronous actions, which cannot await."""
        ...

    def forget(self, call_ids: Iterable[str]) -> None:
        """These calls must be made again."""
        ...


class CallLog(Recorded, Protocol):
    """Kept by the engine where it survives a crash of the process."""

    def is_empty(self) -> bool:
        """Whether there are no answers at all."""
        ...

    # An action is identified by the prefix of its calls' ids.

    def claim(self, action: str) -> bool:
        """Claims the action for this process; returns False if it is already running somewhere."""
        ...

    def running(self, action: str) -> bool:
        """Whether the action is running somewhere."""
        ...

    def ended(self, action: str) -> None:
        """An action claimed by this process has ended; its outcome is in the log."""
        ...

    def park(self, actions: Mapping[str, int]) -> None:
        """State that is about to be committed holds these actions as unfinished and, for each, the number of inputs queued:
        their calls are kept."""
        ...

    def done(self, action: str) -> None:
        """The action is done as soon as its effects are committed: its calls are no longer needed."""
        ...

    def gave_up(self, action: str) -> None:
        """The same for an action that failed, and its run with it: if an earlier attempt got further, the records that it
        left of the run are not needed either."""
        ...


class ActionCalls:
    """The durable calls of one action, in the order in which it makes them."""

    __slots__ = (
        "_above",
        "_after",
        "_count",
        "_log",
        "_prefix",
        "_restarts",
        "_secrets",
        "askers",
        "blocking",
        "failed",
        "path",
        "replay",
    )

    def __init__(
        self,
        log: Recorded,
        prefix: str,
        *,
        restarts: bool,
        secrets: Collection[str] = frozenset(),
        path: tuple[int, ...] = (),
        after: Sequence[FailedCall] = (),
    ) -> None:
        """`secrets` are masked in what is recorded about a call; its answer is recorded unchanged. `path` is the position of
        a branch within the action. `after` are failures that came before all of these calls."""
        self._log = log
        self._secrets = secrets
        self._prefix = prefix
        self._restarts = restarts
        self._count = 0
        self.blocking = False
        """Whether the action waits for its calls on another thread: they are recorded without its event loop."""
        self.path = path
        self.failed: list[FailedCall] = []
        """Forgotten if the job fails with the action, or the failure would be repeated forever."""
        self.replay = Replay()
        self.askers: tuple[Asker, ...] = ()
        """Of the branches that these calls belong to."""
        self._after = after
        self._above: ActionCalls | None = None

    def branch(self) -> ActionCalls:
        """Calls with an order of their own, such as those of one of several chats that run concurrently: the branch takes
        one number of the action now, however many calls it makes later."""
        self.replay.check()
        self._count += 1
        position = self._position()
        made = ActionCalls(
            self._log,
            self._prefix,
            restarts=self._restarts,
            secrets=self._secrets,
            path=(*self.path, self._count),
            after=position.after,
        )
        made.failed, made.replay, made.blocking = self.failed, self.replay, self.blocking
        made.askers, made._above = position.askers, self._above
        return made

    def child(self, number: int, secrets: Collection[str], log: Recorded | None = None) -> ActionCalls:
        """The branch with this number, which gathers what raises by itself."""
        made = ActionCalls(
            log or self._log,
            self._prefix,
            restarts=self._restarts,
            secrets=secrets,
            path=(*self.path, number),
        )
        made.replay, made.askers, made._above = self.replay, self.askers, self
        return made

    @property
    def log(self) -> Recorded:
        return self._log

    def _position(self) -> CallPosition:
        asker = current_asker()
        after: list[FailedCall] = []
        calls: ActionCalls | None = self
        while calls is not None:
            after += calls._after
            after += [failed for failed in calls.failed if asker in failed.askers]
            calls = calls._above
        if asker is not None and asker.cancelling():
            # The action itself is being canceled, and so were its calls: they must be made again.
            after = [failed for failed in after if failed.given_up is None]
        return CallPosition((asker, *self.askers), after, loop_time_s())

    def next(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "") -> CallRecord:
        """The next call, of a function identified by `name` or by where it is defined."""
        self.replay.check()
        self._count += 1
        name = name or name_of(func)
        kwargs = {**getattr(func, "durable_settings", {}), **kwargs}
        text = mask(shown_call(name, func, args, kwargs), self._secrets)
        call_id = format_call(self._prefix, *self.path, self._count)
        return CallRecord(call_id, name, digest_of(args, kwargs), text)

    def known(self, call: CallRecord) -> CallRecord | None:
        """The record of the call from an earlier run of its action; raises if it was another call."""
        found = self._log.find(call.call_id)
        if found is None or (_same_function(found, call) and _same_arguments(found, call)):
            return found
        place = CallId.parse(call.call_id)
        assert place is not None
        assert place.number is not None
        if not self._restarts:
            raise self.replay.differs(
                f"durable call {str(place)[len(place.action) :]} of the action was {found.shown} when it was recorded, "
                f"and is {call.shown} now",
            )
        self._log.forget(self._from_there_on(place.path))
        return None

    def _from_there_on(self, path: tuple[int, ...]) -> list[str]:
        """The recorded calls from this one on."""
        found: list[str] = []
        while True:
            for number in count(path[-1]):
                more = self._recorded((*path[:-1], number), _DEEPEST)
                if not more:
                    break
                found += more
            if len(path) == 1:
                return found
            path = (*path[:-2], path[-2] + 1)

    def _recorded(self, path: tuple[int, ...], levels: int) -> list[str]:
        """The recorded call at this position, and those after it if the position is a branch."""
        call_id = format_call(self._prefix, *path)
        if levels == 0 or self._log.find(call_id) is None:
            return []
        found = [call_id]
        for depth in range(levels):
            for number in count(2):
                # The call itself may be the first of a branch, of a branch that is the first of a branch, and so on.
                more = self._recorded((*path, *[1] * depth, number), levels - depth - 1)
                if not more:
                    break
                found += more
        return found

    def run(
        self, call: CallRecord, make: Callable[[], Any], reconciler: Callable[[], Any] | None
    ) -> Coroutine[Any, Any, Any]:
        """The recorded answer, or the answer of the call, recorded before it is returned."""
        write = self._write_now if self.blocking else self._log.write
        return self._run(call, make, reconciler, write, self._position())

    async def _write_now(self, record: CallRecord) -> None:
        self._log.write_now(record)

    def run_now(self, call: CallRecord, make: Callable[[], Any], reconciler: Callable[[], Any] | None) -> Any:
        """The same for a synchronous action: nothing in it awaits, so its first step is its last."""
        steps = self._run(
            call, functools.partial(_called, make), reconciler, self._write_now, self._position()
        )
        try:
            steps.send(None)
        except StopIteration as end:
            return end.value
        steps.close()
        raise InvalidArgument(
            f"the durable call {call.shown} is asynchronous, but its action is not",
            way_out="make the action async and write: await ctx.durable_execute_async(…)",
        )

    async def _run(
        self,
        call: CallRecord,
        make: Callable[[], Any],
        reconciler: Callable[[], Any] | None,
        write: Callable[[CallRecord], Awaitable[None]],
        position: CallPosition,
    ) -> Any:
        known = self.known(call)
        if known is not None and known.outcome != STARTED:
            return await self._answer(known, position)
        if reconciler is not None:
            self._goes_on(position)
            if known is not None:
                make = functools.partial(_called, reconciler)
            else:
                await write(call)
        try:
            value = await make()
            # A copy, so that what the action does to the answer is not in the log if the action is repeated.
            answer = replace(call, outcome=RETURNED, value=recordable(value, call.shown))
            self._goes_on(position)
            await write(answer)
        except CallLogFailed:
            # Not an outcome of the call: if recorded, it would be repeated after the fault is gone.
            raise
        except asyncio.CancelledError:
            given_up = replace(call, outcome=GIVEN_UP, value=position.seconds())
            self.failed.append(FailedCall([], position.askers, given_up))
            raise
        except Exception as error:
            await write(replace(call, outcome=RAISED, value=stored(error, secrets=self._secrets)))
            self.failed.append(FailedCall([call.call_id], position.askers))
            raise
        return value

    def _goes_on(self, position: CallPosition) -> None:
        """A call is about to be recorded: what came before it stays as it was."""
        for record in position.recorded():
            self._log.write_first(record)

    def fail(self) -> None:
        """The action has failed: calls that raised may succeed the next time."""
        found = ids_of(self.failed)
        if found:
            self._log.forget(found)

    async def _answer(self, known: CallRecord, position: CallPosition) -> Any:
        if known.outcome == GIVEN_UP:
            await self._wait_to_be_given_up(known)
        if known.outcome == RAISED:
            self.failed.append(FailedCall([known.call_id], position.askers))
            # The first version stored the exception itself.
            raise revived(known.value) if isinstance(known.value, StoredError) else known.value
        position.recorded()
        return copied(known.value)

    async def _wait_to_be_given_up(self, known: CallRecord) -> None:
        """The action gives up the call again, which is not made; raises if it takes much longer than the first time."""
        await asyncio.sleep(_PATIENCE_S + 2 * known.value)
        raise self.replay.differs(
            f"durable call {known.shown} was canceled by the action when it was recorded, and is not now"
        )


def recordable(value: Any, shown: str) -> Any:
    """A copy of an answer as it will be read. Raises NotSerializable: an answer that cannot be read back would make the log
    unreadable."""
    if value.__class__ in PLAIN:
        return value
    try:
        return decode(encode(value))
    except EmberflowError as error:
        raise NotSerializable(
            f"the answer of the durable call {shown} cannot be stored",
            cause=error.cause,
            way_out="return plain data from functions given to durable_execute",
        ) from error


async def _called(function: Callable[[], Any]) -> Any:
    result = function()
    return await result if inspect.isawaitable(result) else result


def _same_function(found: CallRecord, call: CallRecord) -> bool:
    return _RENAMED.get(found.function, found.function) == call.function


_RENAMED = {"emberflow.operators.guard_approvals.ask": "ask_human"}
"""Functions of ours that the previous version identified by their module path."""


def _same_arguments(found: CallRecord, call: CallRecord) -> bool:
    # A record of the first version has a digest that cannot be compared: only its function counts.
    return found.arguments == call.arguments or len(found.arguments) != DIGITS
