# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The transport of the vendors' clients: their requests, made by aiohttp.

httpx's own transport costs half as much again in processor time per request, and its pool looks at all requests and connections whenever a
request begins or ends: 2,000 in flight cost half a minute.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any
from urllib.request import getproxies

from emberflow.errors import ResourceFailed, describe_cause

IDLE_S = 30.0
_LONGEST_HEADER = 65_536
_SET_BY_THE_CLIENT = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


def transport_settings(httpx: Any, ca_file: str | None) -> dict[str, Any]:
    """Arguments for an asynchronous client of `httpx`, which is that module or one with its interface. The pool has no limit:
    how many calls are in flight is decided by admission control. Redirects are not followed: prompts, and headers with keys
    other than `Authorization`, would be sent to any server that one names. Raises ResourceFailed for a `ca_file` that cannot
    be read."""
    verify: Any = trusting(ca_file) if ca_file else httpx.create_ssl_context()
    if getproxies() or find_spec("aiohttp") is None:
        # A client with a transport of its own ignores the proxies of the environment. aiohttp is part of our extras, but the
        # vendor's package may have been installed by itself.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
        settings: dict[str, Any] = {"limits": limits, "verify": verify}
    else:
        settings = {"transport": _transport(httpx, verify)}
    return {**settings, "follow_redirects": False}


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


def _translation(httpx: Any) -> Callable[[], AbstractContextManager[None]]:
    """What aiohttp raises, as the client expects it."""
    import aiohttp

    @contextlib.contextmanager
    def translated() -> Generator[None]:
        try:
            yield
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            slow = isinstance(error, TimeoutError)
            raise (httpx.ConnectTimeout if slow else httpx.ConnectError)(str(error)) from error
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from error
        except aiohttp.InvalidURL as error:
            raise httpx.UnsupportedProtocol(str(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.RemoteProtocolError(str(error)) from error

    return translated


def _body_class(httpx: Any, translated: Callable[[], AbstractContextManager[None]]) -> Any:
    class _Body(httpx.AsyncByteStream):
        def __init__(self, response: Any) -> None:
            self._response = response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with translated():
                async for part in self._response.content.iter_any():
                    yield part

        async def aclose(self) -> None:
            # The connection is used again if the response has been read to its end, and is closed otherwise.
            self._response.release()

    return _Body


def _transport(httpx: Any, verify: ssl.SSLContext) -> Any:
    import aiohttp
    import yarl

    translated = _translation(httpx)
    body_class = _body_class(httpx, translated)

    class _Transport(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self._session: aiohttp.ClientSession | None = None

        def _opened(self) -> aiohttp.ClientSession:
            if self._session is None:
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, ssl=verify),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    skip_auto_headers=_SET_BY_THE_CLIENT,
                    max_line_size=_LONGEST_HEADER,
                    max_field_size=_LONGEST_HEADER,
                )
            return self._session

        async def handle_async_request(self, request: Any) -> Any:
            limits = request.extensions.get("timeout", {})
            with translated():
                response = await self._opened().request(
                    request.method,
                    yarl.URL(str(request.url), encoded=True),
                    headers=request.headers.multi_items(),
                    data=await request.aread() or None,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(
                        total=None, sock_connect=limits.get("connect"), sock_read=limits.get("read")
                    ),
                )
            return httpx.Response(
                response.status, headers=list(response.raw_headers), stream=body_class(response)
            )

        async def aclose(self) -> None:
            session, self._session = self._session, None
            if session is not None:
                await session.close()

        def __del__(self) -> None:
            session, self._session = self._session, None
            connector: Any = None if session is None else session.connector
            if session is not None and connector is not None:
                # Its loop has ended, and nothing can be awaited: one step of closing forgets the connections.
                session.detach()
                closing = connector.close()
                with contextlib.suppress(StopIteration):
                    closing.send(None)
                closing.close()

    return _Transport()
