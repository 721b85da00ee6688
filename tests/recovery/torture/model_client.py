"""Calls the model server from actions. A server that is down or busy is retried for a while."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import time
from typing import Any

PATIENCE_S = 20.0
"""A server that is down is restarted sooner; a job that gives up would only be restarted."""
_ERRORS_BORNE = 8


class Refused(Exception):
    """The model will never answer this prompt."""


class Unanswered(Exception):
    """The model server did not answer within the time limit."""


class _Patience:
    """When to give up, and how long to wait until the next attempt."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + PATIENCE_S
        self._errors = 0

    def pause_s(self, status: int, headers: dict[str, str]) -> float:
        self._errors += status == 500
        if time.monotonic() > self._ends or self._errors > _ERRORS_BORNE:
            raise Unanswered(f"the model server answers {status or 'nothing'}")
        return float(headers.get("retry-after", 0.15))


async def ask(port: int, prompt: str, key: str, *, idempotency_key: str) -> list[Any]:
    return await _ask(port, "/call", {"prompt": prompt, "key": key, "idempotency_key": idempotency_key})


async def reconcile(port: int, prompt: str, key: str) -> list[Any]:
    return await _ask(port, "/reconcile", {"prompt": prompt, "key": key})


def ask_blocking(port: int, prompt: str, key: str, *, idempotency_key: str) -> list[Any]:
    patience = _Patience()
    body = json.dumps({"prompt": prompt, "key": key, "idempotency_key": idempotency_key})
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        status, reply, headers = 0, b"", dict[str, str]()
        try:
            connection.request("POST", "/call", body)
            response = connection.getresponse()
            status, reply = response.status, response.read()
            headers = {name.lower(): value for name, value in response.getheaders()}
        except (OSError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        if status in (200, 422):
            return _reply(status, prompt, reply)
        time.sleep(patience.pause_s(status, headers))


async def _ask(port: int, path: str, body: dict[str, str]) -> list[Any]:
    patience = _Patience()
    while True:
        try:
            status, headers, reply = await _post(port, path, body)
        except (OSError, EOFError, ValueError, IndexError):
            status, headers, reply = 0, {}, b""
        if status in (200, 422):
            return _reply(status, body["prompt"], reply)
        await asyncio.sleep(patience.pause_s(status, headers))


async def _post(port: int, path: str, body: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode()
        writer.write(f"POST {path} HTTP/1.1\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        head, _, reply = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(reply) != int(headers.get("content-length", -1)):
        raise EOFError(path)
    return int(first.split(" ")[1]), headers, reply


def _reply(status: int, prompt: str, reply: bytes) -> list[Any]:
    """The answer and the call's idempotency key."""
    found = json.loads(reply)
    if status == 422:
        raise Refused(prompt, found["idempotency_key"])
    return [found["answer"], found["idempotency_key"]]


def note_finished(file: str, idempotency_key: str | None, prompt: str) -> None:
    """The job's own list of answers that it received: from now on none of these calls may be made again."""
    line = json.dumps({"t": time.monotonic(), "idempotency_key": idempotency_key, "prompt": prompt})
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)
