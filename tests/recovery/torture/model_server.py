"""A model behind HTTP that records its requests: `model_server.py PORT RECORD SEED PACE`.

The same prompt always gets the same answer after the same latency. Every request is written to the record, durably,
before anything else happens, and again when it has been answered; times are those of the machine's monotonic clock.

    POST /call       {prompt, key, idempotency_key}    an answer, or 422 for prompts that begin with "refuse"
    POST /reconcile  {prompt, key}                     the result of a call with this prompt; made now if it never arrived
    POST /behave     {mode: "500"|"429"|"hang", seconds}
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from typing import Any

RETRY_AFTER_S = 0.1


def answer(prompt: str) -> int:
    return random.Random(f"answer to {prompt}").randrange(1_000)


def latency_s(seed: int, prompt: str) -> float:
    """Most take 20 to 300 ms, a few 2 to 5 s; calls that block a whole task are quick."""
    chance = random.Random(f"latency {seed} {prompt}")
    if prompt.startswith("note"):
        return chance.uniform(0.002, 0.03)
    return chance.uniform(2, 5) if chance.random() < 0.02 else chance.uniform(0.02, 0.3)


class ModelServer:
    def __init__(self, record: str, seed: int, pace: float) -> None:
        self._record = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._seed = seed
        self._pace = pace
        self._mode = ""
        self._mode_ends = 0.0

    async def serve(self, port: int) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=1_000)
        print("ready", flush=True)
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path, body = await _request(reader)
            if path == "/behave":
                self._mode, self._mode_ends = body["mode"], time.monotonic() + body["seconds"]
                await _respond(writer, 200, {})
            else:
                await self._asked(path.strip("/"), body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The caller is gone.
        finally:
            writer.close()

    async def _asked(self, kind: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        prompt = body["prompt"]
        number = f"{os.getpid()}-{time.monotonic_ns()}"
        await self._note({"id": number, "kind": kind, **body})
        status = await self._status(prompt)
        reply = {"answer": answer(prompt), "idempotency_key": body.get("idempotency_key")}
        try:
            await _respond(writer, status, reply if status == 200 else {"error": status, **reply})
        except ConnectionError:
            status = 0
        await self._note({"id": number, "outcome": status})

    async def _status(self, prompt: str) -> int:
        mode = self._mode if time.monotonic() < self._mode_ends else ""
        if mode in ("500", "429"):
            return int(mode)
        if mode == "hang":
            await asyncio.sleep(self._mode_ends - time.monotonic())
        await asyncio.sleep(latency_s(self._seed, prompt) * self._pace)
        return 422 if prompt.startswith("refuse") else 200

    async def _note(self, entry: dict[str, Any]) -> None:
        os.write(self._record, json.dumps({"t": time.monotonic(), **entry}).encode() + b"\n")
        await asyncio.get_running_loop().run_in_executor(None, os.fsync, self._record)


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0].split(":")[1]))
    return head.split(" ", 2)[1], json.loads(body)


async def _respond(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    extra = f"Retry-After: {RETRY_AFTER_S}\r\n" if status == 429 else ""
    head = f"HTTP/1.1 {status} .\r\nContent-Length: {len(data)}\r\n{extra}Connection: close\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()


if __name__ == "__main__":
    port, record, seed, pace = sys.argv[1:]
    asyncio.run(ModelServer(record, int(seed), float(pace)).serve(int(port)))
