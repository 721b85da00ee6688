"""A model service on loopback that accepts a number of requests per second and answers the others with 429, and its client."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    action,
)
from emberflow.agents.models.chat_model import BaseChatModelConnection


@dataclass(frozen=True)
class Request:
    at_s: float
    begun_s: float
    """When the client started, by the same clock: delays caused by the machine's load are not the client's fault."""
    question: str
    process: int
    taken: bool


class RateLimitedService:
    """A token bucket that holds `burst`, or as much as one second grants. `rate=None` accepts everything; `call_s` is how
    long an answer takes."""

    def __init__(
        self, rate: float | None = None, call_s: float = 0.01, *, burst: float | None = None
    ) -> None:
        self._rate = rate
        self._call_s = call_s
        self._burst = (rate or 0.0) if burst is None else burst
        self._level, self._level_at = self._burst, time.monotonic()
        self.requests: list[Request] = []
        self.in_flight = self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def taken(self) -> list[Request]:
        return [item for item in self.requests if item.taken]

    @property
    def turned_away(self) -> list[Request]:
        return [item for item in self.requests if not item.taken]

    def _takes(self, now: float) -> bool:
        if self._rate is None:
            return True
        self._level = min(self._burst, self._level + (now - self._level_at) * self._rate)
        self._level_at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        now = time.monotonic()
        taken = self._takes(now)
        self.requests.append(Request(now, asked["begun_s"], asked["question"], asked["process"], taken))
        if taken:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            await asyncio.sleep(self._call_s)
            self.in_flight -= 1
            body = json.dumps({"answer": asked["question"].upper()}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        else:
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()


class HttpError(Exception):
    """As clients raise it."""

    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        super().__init__(status_code, headers)
        self.status_code = status_code
        self.headers = headers


class HttpModel(BaseChatModelConnection):
    def __init__(self, port: int) -> None:
        self._port = port

    async def chat(self, messages: Sequence[ChatMessage], tools: Any = None, **kwargs: Any) -> ChatMessage:
        asked = {"question": messages[-1].content, "process": os.getpid(), "begun_s": time.monotonic()}
        body = json.dumps(asked).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines if line)
            status = int(head.split()[1])
            if status != 200:
                raise HttpError(status, headers)
            answer = json.loads(await reader.readexactly(int(headers["Content-Length"])))
        finally:
            writer.close()
        return ChatMessage(role=MessageRole.ASSISTANT, content=answer["answer"])


class Asker(Agent):
    """One request per input."""

    def __init__(self, port: int, **limits: Any) -> None:
        super().__init__()
        self.add_resource(
            "service",
            ResourceType.CHAT_MODEL_CONNECTION,
            ResourceDescriptor(clazz=HttpModel, port=port, **limits),
        )
        self.add_resource(
            "model",
            ResourceType.CHAT_MODEL,
            ResourceDescriptor(clazz=BaseChatModelSetup, connection="service"),
        )

    @action(InputEvent)
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        said = await ctx.chat("model", f"q{event.input[0]}")
        ctx.send_event(OutputEvent(said.content))
