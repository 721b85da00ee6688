"""A refused key: the message says where the key that was sent comes from, or that none was sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    ChatMessage,
    ChatModel,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Secret,
)
from emberflow.agents.models.chat_model import BaseChatModelConnection
from emberflow.errors import ModelFailed
from emberflow.integrations.chat_models.anthropic import AnthropicChatModelConnection
from emberflow.integrations.chat_models.azure_openai import AzureOpenAIChatModelConnection
from emberflow.integrations.chat_models.ollama import OllamaChatModelConnection
from emberflow.integrations.chat_models.openai import (
    OpenAIChatModelConnection,
    OpenAICompatibleChatModelConnection,
)
from emberflow.integrations.chat_models.vllm import VLLMChatModelConnection
from emberflow.testing import run_agent
from tests.support.model_server import Answer, ModelServer, Request

KEY = "sk-very-secret-4242424242"
Make = Callable[..., BaseChatModelConnection]

HOSTED: dict[str, tuple[Make, str]] = {
    "openai": (
        lambda url, **given: OpenAIChatModelConnection(base_url=f"{url}/v1", **given),
        "OPENAI_API_KEY",
    ),
    "azure": (
        lambda url, **given: AzureOpenAIChatModelConnection(azure_endpoint=url, **given),
        "AZURE_OPENAI_API_KEY",
    ),
    "anthropic": (
        lambda url, **given: AnthropicChatModelConnection(base_url=url, **given),
        "ANTHROPIC_API_KEY",
    ),
    "compatible": (
        lambda url, **given: OpenAICompatibleChatModelConnection(base_url=f"{url}/v1", **given),
        "",
    ),
    "vllm": (lambda url, **given: VLLMChatModelConnection(base_url=f"{url}/v1", **given), ""),
}
"""How each is made, and the variable that has its key if none is given."""
every_service = pytest.mark.parametrize("service", HOSTED)
every_status = pytest.mark.parametrize("status", [401, 403])


def refused(make: Make, status: int, **given: Any) -> str:
    """What a service that refuses the key lets us say."""

    async def asked(made: BaseChatModelConnection) -> None:
        try:
            await made.chat([ChatMessage(content="Hello?")], model="m")
        finally:
            made.close()
            await asyncio.sleep(0.01)

    def refuse(request: Request) -> Answer:
        return Answer({"error": {"message": f"wrong: {' '.join(request.headers.values())}"}}, status=status)

    with ModelServer(refuse) as server:
        with pytest.raises(ModelFailed) as failed:
            asyncio.run(asked(make(server.url, **given)))
        assert len(server.requests) == 1
    assert failed.value.status_code == status
    assert KEY not in str(failed.value)
    return failed.value.way_out


@pytest.fixture(autouse=True)
def _keys_of_other_services(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, variable in HOSTED.values():
        if variable:
            monkeypatch.setenv(variable, KEY)
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)


@every_service
@every_status
def test_a_key_that_was_given_is_named_by_its_origin(
    service: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    file = tmp_path / "key"
    file.write_text(KEY)
    make, _ = HOSTED[service]
    origins = {
        "the variable MY_KEY": Secret("MY_KEY"),
        f"the file {str(file)!r}": Secret(file=str(file)),
        "api_key of the connection": KEY,
    }
    for origin, given in origins.items():
        assert refused(make, status, api_key=given).endswith(f"it is taken from {origin}")


@every_service
@every_status
def test_a_key_in_a_header_is_named_by_the_header(service: str, status: int) -> None:
    header = {"azure": "api-key", "anthropic": "X-Api-Key"}.get(service, "Authorization")
    said = refused(HOSTED[service][0], status, default_headers={header: f"Bearer {KEY}"})
    assert said.endswith(f"it is taken from the header {header!r} of default_headers")


@every_service
@every_status
@pytest.mark.parametrize("empty", [None, "", Secret("EMPTY_KEY")], ids=["absent", "empty", "empty secret"])
def test_without_a_key_the_message_names_what_is_used_instead(
    service: str, status: int, empty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY_KEY", "")
    make, variable = HOSTED[service]
    said = refused(make, status, api_key=empty)
    if variable:
        assert said.endswith(f"it is taken from the variable {variable}")
    else:
        assert said == "no key was sent: give the connection the service's key: api_key=Secret('…')"


@every_status
def test_ollama(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(url: str, **given: Any) -> BaseChatModelConnection:
        return OllamaChatModelConnection(url, **given)

    assert refused(make, status) == "no key was sent: set OLLAMA_API_KEY where the job runs"
    said = refused(make, status, default_headers={"authorization": f"Bearer {KEY}"})
    assert said.endswith("it is taken from the header 'authorization' of default_headers")
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    assert refused(make, status).endswith("it is taken from the variable OLLAMA_API_KEY")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (ChatModel.openai_compatible, "no key was sent"),
        (ChatModel.vllm, "no key was sent"),
        (ChatModel.openai, "it is taken from the variable OPENAI_API_KEY"),
        (
            partial(ChatModel.ollama, default_headers={"Authorization": Secret("OPENAI_API_KEY")}),
            "it is taken from the header 'Authorization' of default_headers",
        ),
        (ChatModel.anthropic, "it is taken from the variable ANTHROPIC_API_KEY"),
    ],
)
def test_models_in_one_line(make: Callable[..., ResourceDescriptor], said: str) -> None:
    async def act(event: InputEvent, ctx: Any) -> None:
        ctx.send_event(OutputEvent((await ctx.chat("m", event.input)).content))

    with ModelServer([Answer({"error": {"message": "no"}}, status=401)]) as server:
        agent = Agent("a").add_action("act", [InputEvent], act)
        agent.add_resource("m", ResourceType.CHAT_MODEL, make("m", base_url=f"{server.url}/v1"))
        with pytest.raises(ModelFailed, match=re.escape(said)):
            run_agent(agent, ["?"])
