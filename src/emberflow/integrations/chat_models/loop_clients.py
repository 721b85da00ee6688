"""One asynchronous client, with its pool of connections, per connection and event loop: normally one per process.

A client's sockets belong to the loop on which they were opened. A process of an engine has a single loop; tests and
scripts may use several.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_log = logging.getLogger("emberflow.agents")

C = TypeVar("C")

_PATIENCE_S = 5.0


class LoopClients(Generic[C]):
    """Creates clients on first use and closes them."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[object]]) -> None:
        self._make = make
        self._close = close
        self._clients: dict[asyncio.AbstractEventLoop, C] = {}
        self._lock = threading.Lock()

    def get(self) -> C:
        """The client for the running loop."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is not None:
            return found
        with self._lock:
            # Loops that have ended have closed their sockets.
            for ended in [other for other in self._clients if other.is_closed()]:
                del self._clients[ended]
            if loop not in self._clients:
                self._clients[loop] = self._make()
            return self._clients[loop]

    def close(self) -> None:
        """Closes all clients; returns when that is done, or was started on the running loop."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for loop, client in clients.items():
            if loop.is_closed():
                continue
            try:
                self._close_on(loop, client)
            except Exception as error:
                _log.warning("the client of a chat model was not closed: %s", type(error).__name__)

    def _close_on(self, loop: asyncio.AbstractEventLoop, client: C) -> None:
        async def close() -> None:
            await self._close(client)

        running: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):
            running = asyncio.get_running_loop()
        if loop is running:
            task = loop.create_task(close())
            _closing.add(task)
            task.add_done_callback(_closing.discard)
        elif loop.is_running():
            asyncio.run_coroutine_threadsafe(close(), loop).result(_PATIENCE_S)
        elif running is None:
            loop.run_until_complete(close())


_closing: set[asyncio.Task[None]] = set()
"""The loop itself keeps only weak references to tasks."""
