"""A service with OpenAI's chat interface on the loopback address, in a process of its own: `python -m benchmarks.model_service`.

Answers every request after a second, whatever it asks. Prints its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Generator
from typing import Any

CALL_S = 1.0
_SAID = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "bench",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
}
_BODY = json.dumps(_SAID).encode()
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
)


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while True:
            head, found, rest = self._read.partition(b"\r\n\r\n")
            if not found:
                return
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(rest) < length:
                return
            self._read = rest[length:]
            asyncio.get_running_loop().call_later(CALL_S, self._transport.write, _ANSWER)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def many_files() -> None:
    """Each connection is an open file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def model_service() -> Generator[str]:
    """Its address, while it runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.model_service"], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            yield f"http://127.0.0.1:{running.stdout.readline().strip()}/v1"
        finally:
            running.kill()


if __name__ == "__main__":
    many_files()
    asyncio.run(_serve())
