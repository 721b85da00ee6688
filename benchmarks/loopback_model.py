"""A model service on this machine, in a process of its own: OpenAI's chat interface, every answer after the same time.

`python -m benchmarks.loopback_model DELAY_MS STEPS` prints its port and serves until its input is closed. The model asks
for the tool `add` until it has been called STEPS - 1 times, then it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HOST = "127.0.0.1"


@contextmanager
def loopback_model(delay_ms: int, steps: int) -> Iterator[str]:
    """The service's base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.loopback_model", str(delay_ms), str(steps)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://{HOST}:{int(process.stdout.readline())}/v1"
    finally:
        process.stdin.close()
        process.wait(timeout=30)


class Service:
    def __init__(self, delay_ms: int, steps: int) -> None:
        self._delay_s = delay_ms / 1000
        self._steps = steps

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, which is kept alive."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                body: dict[str, Any] = json.loads(await reader.readexactly(length))
                await asyncio.sleep(self._delay_s)
                data = json.dumps(self._answer(body)).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % len(data)
                    + data
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        done = sum(message["role"] == "tool" for message in body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": f"done after {done} calls"}
        if done < self._steps - 1:
            function = {"name": "add", "arguments": json.dumps({"a": done, "b": 1})}
            call = {"id": f"call-{done}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }


async def main(delay_ms: int, steps: int) -> None:
    service = Service(delay_ms, steps)
    server = await asyncio.start_server(service.serve, HOST, 0, backlog=2_048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # Ending the loop would print a traceback for each connection that is still open.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
