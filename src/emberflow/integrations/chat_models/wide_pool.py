# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""A pool for thousands of concurrent requests to one service.

httpx looks at all requests and connections of a pool whenever a request begins or ends: 2,000 in flight cost half a minute of processor
time. Here each request has a transport of its own while it lasts, with the one connection that it keeps for the next request.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any
from urllib.request import getproxies

from emberflow.errors import ResourceFailed, describe_cause

_IDLE_S = 30.0


def pool_settings(httpx: Any, ca_file: str | None) -> dict[str, Any]:
    """Arguments for an asynchronous client of `httpx`, which is that module or one with its interface. The pool has no limit:
    how many calls are in flight is decided by admission control. Raises ResourceFailed for a `ca_file` that cannot be read."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE_S)
    verify: Any = trusting(ca_file) if ca_file else None
    if getproxies():
        # A client with a transport of its own ignores the proxies of the environment.
        return {"limits": limits, **({} if verify is None else {"verify": verify})}
    return {"transport": _transport(httpx, limits, verify or httpx.create_ssl_context())}


def trusting(ca_file: str) -> ssl.SSLContext:
    """Trusts the certificate authorities of a file, and no others. Raises ResourceFailed if it cannot be read."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        problem, way_out = error, "a CA file contains certificates in PEM form: -----BEGIN CERTIFICATE-----"
    except OSError as error:
        problem, way_out = error, "check the path; the file must exist on every worker"
    raise ResourceFailed(
        f"the CA file {ca_file!r} of the connection cannot be read",
        cause=describe_cause(problem),
        way_out=way_out,
    ) from problem


def _transport(httpx: Any, limits: Any, verify: Any) -> Any:
    class _Returning(httpx.AsyncByteStream):
        """The body of a response: its transport is free again when it is closed."""

        def __init__(self, body: Any, pool: _WidePool, transport: Any) -> None:
            self._body = body
            self._pool: _WidePool | None = pool
            self._transport = transport

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._body:
                yield part

        async def aclose(self) -> None:
            pool, self._pool = self._pool, None
            try:
                await self._body.aclose()
            finally:
                if pool is not None:
                    await pool.release(self._transport)

    class _WidePool(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self._free: deque[tuple[Any, float]] = deque()
            """Transports without a request, and since when. The one that was used last is used first."""
            self._closed = False

        async def handle_async_request(self, request: Any) -> Any:
            if self._free:
                transport, _ = self._free.pop()
            else:
                transport = httpx.AsyncHTTPTransport(verify=verify, limits=limits)
            try:
                response = await transport.handle_async_request(request)
            except BaseException:
                await self.release(transport)
                raise
            response.stream = _Returning(response.stream, self, transport)
            return response

        async def release(self, transport: Any) -> None:
            free, now = self._free, monotonic()
            if self._closed:
                await transport.aclose()
                return
            free.append((transport, now))
            while free[0][1] < now - _IDLE_S:
                idle, _ = free.popleft()
                await idle.aclose()

        async def aclose(self) -> None:
            self._closed = True
            while self._free:
                transport, _ = self._free.pop()
                await transport.aclose()

    return _WidePool()
