"""The calls of requests that come next in a run are made together with those of the current one.

The actions of a run take effect one after another, in order. What a model or a tool answers to the next request does not
depend on the effects of this one if no other action runs in between. So the built-in action of the first of several
adjacent requests makes the calls of all of them concurrently, and keeps the outcomes of the others in sensory memory,
where their own actions find them (`event_actions.py`), also if the action fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar, cast

from emberflow.agents.built_in.stored_chats import memory_name
from emberflow.operators.agents.calls.stored_errors import StoredError, revived, stored
from emberflow.operators.agents.guards.error_kinds import ends_the_action
from emberflow.operators.agents.runner_context import RunnerContext, secrets_of, set_for_good
from emberflow.plan.agents.memory_kinds import CALLS_AHEAD
from emberflow.state.memory_object import MemoryObject

T = TypeVar("T")


async def with_calls_ahead(own: Awaitable[T], later: Mapping[str, Awaitable[Any]], ctx: RunnerContext) -> T:
    """The outcome of `own`, after those of all `later` ones, which are kept under the ids of their events unless they are
    None."""
    if not later:
        return await own
    outcome, *others = await asyncio.gather(own, *later.values(), return_exceptions=True)
    for event_id, other in zip(later, others, strict=True):
        if other is None:
            continue
        if not isinstance(other, BaseException):
            set_for_good(ctx, _place(event_id), {"outcome": other})
        elif isinstance(other, Exception) and not ends_the_action(other):
            set_for_good(ctx, _place(event_id), {"error": stored(other, secrets=secrets_of(ctx))})
        # Anything else ends the action that it belongs to, when that makes the call itself.
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def take_outcome(event_id: str, memory: MemoryObject) -> Any:
    """What an earlier action has kept for this event, None if nothing. Raises the error if the call has failed."""
    kept = cast("dict[str, Any] | None", memory.get(_place(event_id)))
    if kept is None:
        return None
    memory.delete(_place(event_id))
    error: StoredError | None = kept.get("error")
    if error is not None:
        raise revived(error)
    return kept["outcome"]


def _place(event_id: str) -> str:
    return f"{CALLS_AHEAD}.{memory_name(event_id)}"
