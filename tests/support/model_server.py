"""A server on the loopback address that answers like a model service: in the vendors' formats, and in all the wrong ways.

Written on asyncio's streams, so that it can do what no framework lets a handler do: cut connections, stop streams half-way,
send bytes that are not HTTP.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """What the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """What it sends. `raw` replaces the JSON of `body`; `events` are sent as a stream, in which `cut` leaves out the end."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    events: list[str] | None = None
    cut: bool = False
    delay_s: float = 0.0


Handler = Callable[[Request], Answer]


class ModelServer:
    """Answers with a handler, or with one answer after the other; the last one is repeated."""

    def __init__(self, answers: Handler | list[Answer], *, tls: ssl.SSLContext | None = None) -> None:
        self._answers = answers
        self._tls = tls
        self.requests: list[Request] = []
        self.connections = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="model-server")

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._writers)

    def hang_up(self) -> None:
        """Closes all connections, as a service does with idle ones."""
        for writer in list(self._writers):
            self._loop.call_soon_threadsafe(writer.close)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(
            self._serve_client, "127.0.0.1", self.port, ssl=self._tls, backlog=4096
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                answer = self._answer(request)
                if answer.delay_s:
                    await asyncio.sleep(answer.delay_s)
                if not await _write(writer, answer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, request: Request) -> Answer:
        if callable(self._answers):
            return self._answers(request)
        return self._answers[min(len(self.requests), len(self._answers)) - 1]


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    body = await reader.readexactly(length) if length else b""
    return Request(method, path, headers, json.loads(body) if body else None)


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    """Returns whether the connection is kept."""
    if answer.events is None:
        data = json.dumps(answer.body).encode() if answer.raw is None else answer.raw
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **answer.headers}
        _write_head(writer, answer.status, headers)
        writer.write(data[: len(data) // 2] if answer.cut else data)
    else:
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **answer.headers}
        _write_head(writer, answer.status, headers)
        for event in answer.events:
            data = event.encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        if not answer.cut:
            writer.write(b"0\r\n\r\n")
    await writer.drain()
    return not answer.cut


def _write_head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    head = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
