"""Where the code inside a durable call runs blocking functions: on the threads of the host, if there is one.

Set by the execution of an action for the duration of a call; read by tools that are plain functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]

_host: ContextVar[InThread | None] = ContextVar("emberflow-host-threads", default=None)


def host_threads() -> InThread | None:
    """None outside of a durable call."""
    return _host.get()


@contextlib.contextmanager
def threads_of(host: InThread) -> Generator[None]:
    """In this block, blocking functions run on the host's threads."""
    token = _host.set(host)
    try:
        yield
    finally:
        # A coroutine that is dropped before its end is closed in another context.
        with contextlib.suppress(ValueError):
            _host.reset(token)
