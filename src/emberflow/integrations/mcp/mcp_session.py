"""One session with an MCP server, and the connection that opens another one when it has ended.

Everything here runs on the thread of sessions (`session_thread.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import anyio
from mcp import Client, MCPError

from emberflow.errors import ToolFailed, describe_cause
from emberflow.integrations.mcp.transports import Address, open_client

T = TypeVar("T")

_CLOSED = -32000
"""The SDK's code of a connection that was closed."""
_UNKNOWN_SESSION = (-32600, -32001)
"""A server that was restarted does not know the session; it has not executed the request."""


class Session:
    """Entered and left by one task of its own, as the SDK requires."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._stop = asyncio.Event()
        self.ended = anyio.Event()
        self.refusals: list[str] = []
        """The last HTTP error."""
        self.ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Whoever waited for it may have been canceled: nobody else needs its error.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async with open_client(self._address, self.ended, self.refusals) as client:
                self.ready.set_result(client)
                await self._stop.wait()
        except BaseException as error:
            if not self.ready.done():
                self.ready.set_exception(_innermost(error))
            elif isinstance(error, asyncio.CancelledError):
                raise
            # Afterwards, calls in flight have failed with it already.
        finally:
            self.ended.set()

    async def close(self) -> None:
        """Waits for the end of the server's process, which the SDK kills if it does not end."""
        self._stop.set()
        if not self.ready.done():
            self.task.cancel()
        await asyncio.wait({self.task})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a connection is tried before the server counts as down, and the pauses between attempts, then and later."""

    max_retries: int = 3
    initial_backoff_s: float = 0.1
    max_backoff_s: float = 10.0


class Connection:
    """Sessions with one server, one at a time; the first call opens one, and so does the first call after it has ended.

    Calls that need a session at the same time share one attempt to open it, and its failure. Calls that follow a failure fail
    with it at once until a pause is over, which doubles with each failure and is at least as long as the attempt was; then one of
    them tries a single connection.
    """

    def __init__(self, name: str, address: Address, retries: Retries) -> None:
        self._name = name
        self._address = address
        self._retries = retries
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._waiting = 0
        """How many calls wait for the attempt."""
        self._failure: ToolFailed | None = None
        """Why the server is down; None if it is not known to be."""
        self._pause_s = 0.0
        self._try_again_s = 0.0
        self._closed = False
        self.opened = 0
        """How many sessions there have been."""

    async def call(self, what: str, work: Callable[[Client], Awaitable[T]]) -> T:
        """The result of `work`, which sends one request. A request that may have been executed is not repeated. Raises
        ToolFailed."""
        for attempt in (1, 2):
            session = await self._open()
            try:
                return await self._in_session(session, work)
            except MCPError as error:
                if error.code in _UNKNOWN_SESSION and attempt == 1 and "ession" in error.message:
                    await self._drop(session)
                    continue
                if error.code == _CLOSED or session.ended.is_set():
                    await self._drop(session)
                    raise self._lost(what, error) from error
                raise ToolFailed(
                    f"the MCP server {self._name} could not {what}", cause=error.message
                ) from error
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, _SessionEnded) as error:
                await self._drop(session)
                raise self._lost(what, error) from error
        raise AssertionError("unreachable")

    async def _in_session(self, session: Session, work: Callable[[Client], Awaitable[T]]) -> T:
        async def watch() -> None:
            await session.ended.wait()

        client = await session.ready
        request: asyncio.Future[T] = asyncio.ensure_future(work(client))
        end = asyncio.ensure_future(watch())
        try:
            await asyncio.wait({request, end}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                # The SDK fails requests whose connection is lost; this is for those that it does not notice.
                await asyncio.wait({request}, timeout=1)
            if not request.done():
                raise _SessionEnded("the connection was closed")
            return request.result()
        finally:
            request.cancel()
            end.cancel()

    def _lost(self, what: str, error: BaseException) -> ToolFailed:
        return ToolFailed(
            f"the connection to the MCP server {self._name} was lost while it was asked to {what}",
            cause=describe_cause(error),
            way_out="the request may have been executed; the next call connects again",
        )

    async def _open(self) -> Session:
        found = self._session
        if found is not None and not found.ended.is_set():
            return found
        opening = self._opening
        if opening is None:
            if self._failure is not None and asyncio.get_running_loop().time() < self._try_again_s:
                raise _again(self._failure) from self._failure
            opening = self._opening = asyncio.create_task(self._opened())
            # Its last caller may have been canceled: nobody else needs its error.
            opening.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self._waiting += 1
        try:
            await asyncio.wait({opening})
        finally:
            self._waiting -= 1
            if not self._waiting and not opening.done():
                # Nobody needs it any more; the next call starts over.
                self._opening = None
                opening.cancel()
        if opening.cancelled():
            raise self._is_closed()
        error = opening.exception()
        if isinstance(error, ToolFailed):
            raise _again(error) from error
        return opening.result()

    async def _opened(self) -> Session:
        """The attempt that all callers share: a new session. Remembers why there is none."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            if self._session is not None:
                await self._drop(self._session)
            session = await self._connected()
        except ToolFailed as error:
            pause_s = self._retries.initial_backoff_s if self._failure is None else self._pause_s * 2
            # A server that does not answer at all must not keep its callers waiting most of the time.
            pause_s = max(pause_s, loop.time() - began_s)
            self._pause_s = min(pause_s, self._retries.max_backoff_s)
            self._try_again_s = loop.time() + self._pause_s
            self._failure = error
            raise
        else:
            self._failure = None
            self._session = session
            self.opened += 1
            return session
        finally:
            if self._opening is asyncio.current_task():
                self._opening = None

    async def _connected(self) -> Session:
        # A server that is known to be down is asked once: a chat that does without its tools must not wait for more.
        retries = self._retries.max_retries if self._failure is None else 0
        delay = self._retries.initial_backoff_s
        for left in range(retries, -1, -1):
            if self._closed:
                raise self._is_closed()
            session = Session(self._address)
            try:
                await asyncio.wait_for(asyncio.shield(session.ready), self._address.timeout_s)
            except asyncio.CancelledError:
                await session.close()
                raise
            except Exception as error:
                await session.close()
                if not left:
                    raise self._unreachable(session, error) from error
                await asyncio.sleep(delay)
                delay = min(delay * 2, self._retries.max_backoff_s)
            else:
                return session
        raise AssertionError("unreachable")

    def _is_closed(self) -> ToolFailed:
        return ToolFailed(f"the connection to the MCP server {self._name} is already closed")

    def _unreachable(self, session: Session, error: Exception) -> ToolFailed:
        return ToolFailed(
            f"the MCP server {self._name} cannot be reached",
            cause="; ".join([describe_cause(error), *session.refusals]),
            way_out="start it, or check its address and credentials; calls try again after a pause of at most "
            f"{self._retries.max_backoff_s:g} s",
        )

    async def _drop(self, session: Session) -> None:
        if self._session is session:
            self._session = None
        await session.close()

    async def close(self) -> None:
        """Ends the session; calls afterwards fail."""
        self._closed = True
        opening = self._opening
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        if self._session is not None:
            await self._drop(self._session)


class _SessionEnded(Exception):
    pass


def _again(failure: ToolFailed) -> ToolFailed:
    """The same error for another caller."""
    return ToolFailed(failure.message, cause=failure.cause, way_out=failure.way_out)


def _innermost(error: BaseException) -> BaseException:
    """The first error of a group: task groups of the SDK wrap what their tasks raise."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
