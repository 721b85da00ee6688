"""The time limit of a call, which begins when the call's code runs: the wait for a thread or for admission does not count.

Entered by whoever makes the call (`agents/built_in/tool_calls.py`); what makes a call wait holds it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token
from typing import Any, Self

_limit: ContextVar[TimeLimit | None] = ContextVar("emberflow-time-limit", default=None)


class TimeLimit:
    """`async with TimeLimit(seconds)`: raises TimeoutError afterwards if the time was over. 0: no limit."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds or None)
        self._loop = asyncio.get_running_loop()
        self._left_s: float | None = None
        """While the time stands still."""
        self._entered = False
        self._token: Token[TimeLimit | None] | None = None

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._token = _limit.set(self)
        self._entered = True
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        self._entered = False
        if self._token is not None:
            # A coroutine that is dropped before its end is closed in another context.
            with contextlib.suppress(ValueError):
                _limit.reset(self._token)
        return await self._timeout.__aexit__(*raised)

    def expired(self) -> bool:
        """Whether it was the limit that ended the call."""
        return self._timeout.expired()

    def hold(self) -> None:
        """The time stands still until `go_on`."""
        when = self._timeout.when()
        if self._entered and when is not None and not self._timeout.expired():
            self._left_s = when - self._loop.time()
            self._timeout.reschedule(None)

    def go_on(self) -> None:
        """The time continues; without effect if it does not stand still."""
        left_s, self._left_s = self._left_s, None
        if self._entered and left_s is not None:
            self._timeout.reschedule(self._loop.time() + left_s)

    @property
    def is_of_this_loop(self) -> bool:
        """Whether the caller may hold it: a function on a thread may have coroutines run elsewhere."""
        return asyncio.get_running_loop() is self._loop


def held_limit() -> TimeLimit | None:
    """The limit of the call that the running code is a part of, which is held now; None if there is none."""
    limit = _limit.get()
    if limit is None or not limit.is_of_this_loop:
        return None
    limit.hold()
    return limit


async def on_thread(run: Callable[[Callable[[], Any]], Awaitable[Any]], function: Callable[[], Any]) -> Any:
    """`run(function)`, which waits for a free thread."""
    limit = held_limit()
    if limit is None:
        return await run(function)
    loop = asyncio.get_running_loop()

    def begun() -> Any:
        loop.call_soon_threadsafe(limit.go_on)
        return function()

    try:
        return await run(begun)
    finally:
        limit.go_on()
