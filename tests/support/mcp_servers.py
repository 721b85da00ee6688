"""MCP servers on this machine, made with the SDK's own server: `python -m tests.support.mcp_servers [port]`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

ROOT = Path(__file__).parents[2]


def make_server(name: str = "workshop") -> MCPServer:
    server = MCPServer(name)

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def fail(why: str) -> str:
        """Fails."""
        raise ToolError(f"it failed: {why}")

    @server.tool()
    def crash() -> str:
        """Kills its process."""
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    @server.tool()
    async def sleep(seconds: float) -> str:
        """Sleeps."""
        await asyncio.sleep(seconds)
        return "slept"

    @server.tool()
    def environment(name: str) -> str:
        """A variable of its environment."""
        return os.environ.get(name, "not set")

    @server.tool()
    def pid() -> int:
        """Its process."""
        return os.getpid()

    @server.prompt()
    def review(product: str, tone: str = "calm") -> str:
        """Asks for a review."""
        return f"Review {product} in a {tone} tone."

    return server


def stdio_arguments() -> dict[str, Any]:
    """Arguments of an `MCPServer` resource that starts this server as a process."""
    return {"command": sys.executable, "args": ["-m", "tests.support.mcp_servers"], "cwd": str(ROOT)}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def http_server(port: int | None = None, token: str = "") -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process of a server that is ready."""
    port = port or free_port()
    command = [sys.executable, "-m", "tests.support.mcp_servers", str(port), token]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        process.kill()
        process.wait()


def serve_http(port: int, token: str) -> None:
    import uvicorn

    app: Any = make_server().streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers") or {}).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and given != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error", lifespan="on")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_http(int(sys.argv[1]), sys.argv[2])
    else:
        make_server().run("stdio")
