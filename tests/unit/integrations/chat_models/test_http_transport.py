"""Connections to a service are kept, reused, and closed when nobody needs them."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import httpx2
import pytest

from emberflow.agents import ChatMessage
from emberflow.errors import ModelFailed
from emberflow.integrations.chat_models import http_transport
from emberflow.integrations.chat_models.openai import OpenAICompatibleChatModelConnection
from tests.support.model_server import Answer, ModelServer
from tests.support.openai_answers import completion
from tests.support.waiting import until

HELLO = [ChatMessage(content="Hello?")]


def connection(server: ModelServer) -> OpenAICompatibleChatModelConnection:
    return OpenAICompatibleChatModelConnection(base_url=f"{server.url}/v1")


async def ask(made: OpenAICompatibleChatModelConnection) -> str:
    return (await made.chat(HELLO, model="gpt-test")).content


def test_concurrent_calls_have_a_connection_each_which_later_calls_use_again() -> None:
    async def run(made: OpenAICompatibleChatModelConnection) -> None:
        assert await asyncio.gather(*(ask(made) for _ in range(50))) == ["yes"] * 50
        assert await asyncio.gather(*(ask(made) for _ in range(50))) == ["yes"] * 50
        for _ in range(3):
            assert await ask(made) == "yes"
        made.close()
        await asyncio.sleep(0)

    with ModelServer(lambda request: replace(completion("yes"), delay_s=0.2)) as server:
        asyncio.run(run(connection(server)))
        assert len(server.requests) == 103
        # As many as were in flight at a time, which is 50 unless the machine is very slow.
        assert 1 < server.connections <= 50


def test_a_connection_that_the_service_has_closed_is_replaced() -> None:
    async def run(made: OpenAICompatibleChatModelConnection, server: ModelServer) -> None:
        assert await ask(made) == "yes"
        server.hang_up()
        await asyncio.to_thread(until, lambda: server.open_connections == 0)
        assert await ask(made) == "yes"
        made.close()
        await asyncio.sleep(0)

    with ModelServer([completion("yes")]) as server:
        asyncio.run(run(connection(server), server))
        assert server.connections == 2


def test_a_connection_is_used_again_after_an_unreadable_answer() -> None:
    async def run(made: OpenAICompatibleChatModelConnection) -> None:
        for _ in range(3):
            with pytest.raises(ModelFailed):
                await ask(made)
        made.close()
        await asyncio.sleep(0)

    with ModelServer([Answer(raw=b"not JSON")]) as server:
        asyncio.run(run(connection(server)))
        assert server.connections == 1


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "IDLE_S", 0.2)

    async def run(made: OpenAICompatibleChatModelConnection, server: ModelServer) -> None:
        await asyncio.gather(*(ask(made) for _ in range(8)))
        await asyncio.to_thread(until, lambda: server.open_connections == 0)
        assert await ask(made) == "yes"
        made.close()
        await asyncio.sleep(0)

    with ModelServer(lambda request: replace(completion("yes"), delay_s=0.2)) as server:
        asyncio.run(run(connection(server), server))


def test_a_client_whose_event_loop_has_ended_is_discarded_silently(
    recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer([completion("yes")]) as server:
        made = connection(server)
        for _ in range(3):
            assert asyncio.run(ask(made)) == "yes"
        made.close()
        del made
        gc.collect()
    assert not caplog.records
    # asyncio warns about the sockets of a loop that ends before they are closed.
    assert {item.category for item in recwarn} <= {ResourceWarning}


def test_without_aiohttp_the_clients_own_transport_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "find_spec", lambda name: None)
    assert "transport" not in http_transport.transport_settings(httpx2, None)
    with ModelServer([completion("yes")]) as server:
        assert asyncio.run(ask(connection(server))) == "yes"
