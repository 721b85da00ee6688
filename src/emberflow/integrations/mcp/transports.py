"""How an MCP server is reached: a process with standard input and output, or streamable HTTP.

Imports the SDK: loaded when a session is opened, never with the program.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from emberflow.errors import InvalidArgument, describe_cause

_REFUSALS = (401, 403, 404, 407, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, with the secrets it asks for. Never shown as a whole."""

    endpoint: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    auth: Any = field(default=None, repr=False)
    timeout_s: float = 30.0
    sse_read_timeout_s: float = 300.0
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None


@asynccontextmanager
async def open_client(address: Address, ended: anyio.Event, refusals: list[str]) -> AsyncGenerator[Client]:
    """A connected client; sets `ended` when the server closes the connection, and collects its HTTP errors, which the SDK
    does not report."""
    transport = _process(address, ended) if address.command else _http(address, refusals)
    async with Client(transport, read_timeout_seconds=address.timeout_s) as client:
        yield client


@asynccontextmanager
async def _http(address: Address, refusals: list[str]) -> AsyncGenerator[Any]:
    async def look(response: httpx2.Response) -> None:
        if response.status_code in _REFUSALS or response.status_code >= 500:
            refusals[:] = [f"HTTP {response.status_code} {response.reason_phrase}"]

    timeout = httpx2.Timeout(address.timeout_s, read=address.sse_read_timeout_s)
    hooks = {"response": [look]}
    auth = as_auth(address.auth)
    async with (
        httpx2.AsyncClient(headers=address.headers, timeout=timeout, auth=auth, event_hooks=hooks) as http,
        streamable_http_client(address.endpoint, http_client=http) as streams,
    ):
        yield streams


class _NotMessages(logging.Filter):
    """Of lines that are not messages, which a server prints, at most one a second is logged, without the SDK's stack trace."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is None or "parse" not in str(record.msg):
            return True
        error, now = record.exc_info[1], time.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + 1.0
        record.msg = "an MCP server wrote a line to its standard output that is not a message (its logs belong on standard error): %s"
        record.args = ("" if error is None else describe_cause(error),)
        record.exc_info = None
        return True


logging.getLogger("mcp.client.stdio").addFilter(_NotMessages())


@asynccontextmanager
async def _process(address: Address, ended: anyio.Event) -> AsyncGenerator[Any]:
    parameters = StdioServerParameters(
        command=address.command, args=list(address.args), env=address.env, cwd=address.cwd
    )
    forward, received = anyio.create_memory_object_stream[Any](0)
    process = cast("AbstractAsyncContextManager[tuple[Any, Any]]", stdio_client(parameters, errlog=_errors()))
    async with process as (read, write), anyio.create_task_group() as tasks:

        async def pass_on() -> None:
            # The end of the stream is the end of the process, also between calls.
            async with forward:
                async for message in read:
                    await forward.send(message)
            ended.set()

        tasks.start_soon(pass_on)
        try:
            yield received, write
        finally:
            tasks.cancel_scope.cancel()


def _errors() -> TextIO:
    """Where a server's own messages go: to this process's log."""
    stream: Any = sys.__stderr__
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        # A number that `subprocess` accepts in place of a file.
        return cast("TextIO", subprocess.DEVNULL)
    return stream


class _ForeignAuth(httpx2.Auth):
    """An `httpx.Auth`, which has the same protocol."""

    def __init__(self, auth: Any) -> None:
        self._auth = auth

    def auth_flow(self, request: Any) -> Generator[Any, Any]:
        yield from self._auth.auth_flow(request)


def as_auth(auth: Any) -> httpx2.Auth | None:
    """The authentication of HTTP requests: an `Auth` of httpx, or user and password."""
    if auth is None or isinstance(auth, httpx2.Auth):
        return auth
    pair: Any = tuple(auth) if auth.__class__ in (list, tuple) else ()
    if len(pair) == 2:
        return httpx2.BasicAuth(str(pair[0]), str(pair[1]))
    if callable(getattr(auth, "auth_flow", None)):
        return _ForeignAuth(auth)
    raise InvalidArgument(
        f"auth of an MCP server must be a user and a password, or an Auth of httpx, got a {auth.__class__.__name__}",
        way_out="auth=(user, Secret('PASSWORD')), or bearer_token=Secret('TOKEN')",
    )
