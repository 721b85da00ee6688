"""What a server that is down costs its callers (A22)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Generator
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
)
from emberflow.errors import ToolFailed
from emberflow.integrations.mcp import MCPServer
from emberflow.testing import ScriptedChatModel, When, run_agent

DAY_MS = 86_400_000


class DownServer:
    """Counts connections, and closes each once `release` is set."""

    def __init__(self, listening: socket.socket) -> None:
        self.connections = 0
        self.connected = threading.Event()
        self.release = threading.Event()
        self._listening = listening
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self.connected.set()
            self.release.wait()
            connection.close()


@contextlib.contextmanager
def down_server(*, released: bool = True) -> Generator[DownServer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = DownServer(listening)
        if released:
            made.release.set()
        thread = threading.Thread(target=made.run)
        thread.start()
        try:
            yield made
        finally:
            made.release.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def call(server: MCPServer) -> str:
    try:
        return await server.call_tool_async("add", a=1, b=2)
    except ToolFailed as error:
        return error.message


def test_callers_share_one_attempt_and_its_failure() -> None:
    with down_server() as down:
        # The second of two connections, and the pause afterwards, leave a second each for the callers to arrive.
        server = MCPServer(down.address, max_retries=1, initial_backoff_ms=1_000)

        async def at_once() -> list[str]:
            return await asyncio.gather(*(call(server) for _ in range(10)))

        said = asyncio.run(at_once())
        server.close()
        assert ["cannot be reached" in item for item in said] == [True] * 10
        assert down.connections == 2


def test_a_server_that_is_known_to_be_down_is_tried_once_after_a_pause() -> None:
    with down_server() as down:
        server = MCPServer(down.address, max_retries=2, initial_backoff_ms=1)
        assert "cannot be reached" in asyncio.run(call(server))
        assert down.connections == 3
        while down.connections == 3:
            assert "cannot be reached" in asyncio.run(call(server))
        assert down.connections == 4
        server.close()


def test_during_the_pause_calls_fail_at_once() -> None:
    with down_server() as down:
        server = MCPServer(down.address, max_retries=0, initial_backoff_ms=DAY_MS, max_backoff_ms=DAY_MS)
        first, second = asyncio.run(call(server)), asyncio.run(call(server))
        assert first == second
        assert "cannot be reached" in first
        assert down.connections == 1
        server.close()


def test_the_pause_is_as_long_as_the_attempt() -> None:
    with down_server(released=False) as down:
        server = MCPServer(
            down.address, timeout=2, max_retries=0, initial_backoff_ms=1, max_backoff_ms=DAY_MS
        )

        async def twice() -> list[str]:
            return [await call(server), await call(server)]

        assert ["cannot be reached" in item for item in asyncio.run(twice())] == [True, True]
        assert down.connections == 1
        server.close()


def test_a_canceled_caller_does_not_end_the_attempt_of_the_others() -> None:
    with down_server(released=False) as down:
        server = MCPServer(down.address, max_retries=0)

        async def one_gives_up() -> str:
            impatient, patient = (asyncio.ensure_future(call(server)) for _ in range(2))
            await asyncio.to_thread(down.connected.wait)
            impatient.cancel()
            with pytest.raises(asyncio.CancelledError):
                await impatient
            down.release.set()
            return await patient

        assert "cannot be reached" in asyncio.run(one_gives_up())
        assert down.connections == 1
        server.close()


def test_closing_ends_an_attempt() -> None:
    with down_server(released=False) as down:
        server = MCPServer(down.address, timeout=3600)
        said: list[str] = []
        caller = threading.Thread(target=lambda: said.append(asyncio.run(call(server))))
        caller.start()
        down.connected.wait()
        server.close()
        caller.join()
        assert "is already closed" in said[0]


def chatting(server: dict[str, Any], tools: list[str]) -> Agent:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((await ctx.chat("model", event.input)).content))

    replies = ResourceDescriptor(clazz=ScriptedChatModel, replies=[When(reply="ok")])
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection=replies, tools=tools)
    return (
        Agent("chatting")
        .add_action("act", [InputEvent], act)
        .add_resource("shop", ResourceType.MCP_SERVER, ResourceDescriptor(clazz=MCPServer, **server))
        .add_resource("model", ResourceType.CHAT_MODEL, model)
    )


def test_the_cost_does_not_grow_with_keys_and_tools() -> None:
    with down_server() as down:
        server = {"endpoint": down.address, "max_retries": 1, "initial_backoff_ms": 1_000}
        inputs = [{"key": key, "value": "q"} for key in range(6)]
        assert run_agent(chatting(server, ["a", "b", "c"]), inputs).outputs == ["ok"] * 6
        assert down.connections == 2


def test_the_warning_does_not_show_secrets(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-314159265")
    server = {"command": "no-such-command", "args": ["--token", Secret("SHOP_TOKEN")], "max_retries": 0}
    with caplog.at_level(logging.WARNING):
        assert run_agent(chatting(server, ["add"]), ["q"]).outputs == ["ok"]
    assert "no-such-command --token ***" in caplog.text
    assert "tok-314159265" not in caplog.text


def test_arguments_are_shown_whole_or_not_at_all() -> None:
    secret = "s" * 150
    assert MCPServer(command="/bin/serve", args=["--token", secret, "--port"]).shown == "'serve --token …'"
    assert MCPServer(command="serve", args=["--api-key=abc"]).shown == "'serve --api-key=***'"
