"""Resources have the methods of pydantic models, and show no secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from emberflow.agents import (
    BaseChatModelSetup,
    ChatMessage,
    FunctionTool,
    Prompt,
    Resource,
)
from emberflow.errors import InvalidArgument


class Weather(Resource):
    def __init__(self, url: str, api_key: str, headers: dict[str, str] | None = None) -> None:
        self.url = url
        self._api_key = api_key
        self.headers = headers or {}


class Store(Resource):
    host: str
    retries: int = 3


class OwnSetup(BaseChatModelSetup):
    host: str = "local"


def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def test_fields_are_the_arguments_and_secrets_are_masked() -> None:
    weather = Weather("http://w", "s3cret", {"Authorization": "Bearer abc", "x": "y"})
    assert weather.model_dump() == {
        "url": "http://w",
        "api_key": "***",
        "headers": {"Authorization": "***", "x": "y"},
    }
    assert "s3cret" not in weather.model_dump_json()
    assert "abc" not in weather.model_dump_json()


def test_a_copy_has_the_secrets_of_the_original_and_other_arguments() -> None:
    weather = Weather("http://w", "s3cret")
    made = weather.model_copy(update={"url": "http://v"})
    assert (made.url, made._api_key, weather.url) == ("http://v", "s3cret", "http://w")
    assert weather.model_copy(update={"api_key": "new"})._api_key == "new"
    with pytest.raises(InvalidArgument, match="did you mean 'url'"):
        weather.model_copy(update={"urll": "x"})


def test_a_masked_secret_is_not_read_back() -> None:
    weather = Weather("http://w", "s3cret")
    with pytest.raises(InvalidArgument, match="'api_key' of Weather is a secret that was masked"):
        Weather.model_validate(weather.model_dump())
    made = Weather.model_validate({**weather.model_dump(), "api_key": "again"})
    assert made._api_key == "again"


def test_declared_fields_are_checked() -> None:
    store = Store.model_validate_json('{"host": "h", "retries": 5}')
    assert store.model_dump() == {"host": "h", "retries": 5}
    for wrong in ({"host": 1}, {"retries": 1}, {"host": "h", "retrys": 1}):
        with pytest.raises(InvalidArgument):
            Store.model_validate(wrong)


def test_a_setup_shows_its_settings_and_is_created_from_them() -> None:
    setup: Any = OwnSetup(connection="c", model="m", host="h", temperature=0.5, prompt="p")
    data = setup.model_dump()
    assert (data["connection"], data["model"], data["host"], data["temperature"]) == ("c", "m", "h", 0.5)
    again: Any = OwnSetup.model_validate(json.loads(setup.model_dump_json()))
    assert again.model_dump() == data
    assert again.settings == {"temperature": 0.5}
    warmer: Any = setup.model_copy(update={"temperature": 0.9, "model": "n"})
    assert (warmer.model_kwargs, setup.model_kwargs) == (
        {"model": "n", "temperature": 0.9},
        {"model": "m", "temperature": 0.5},
    )


@pytest.mark.parametrize("template", ["hello {name}", [ChatMessage(role="system", content="be {kind}")]])
def test_prompts(template: Any) -> None:
    prompt = Prompt(template)
    assert Prompt.model_validate_json(prompt.model_dump_json()) == prompt


def test_tools() -> None:
    tool = FunctionTool(double, name="twice")
    data = json.loads(tool.model_dump_json())
    assert data["metadata"]["name"] == "twice"
    assert data["func"] == {"module": __name__, "qualname": "double"}
    assert FunctionTool.model_validate(data) == tool


def test_a_resource_is_a_field_of_a_model() -> None:
    class Holder(BaseModel):
        prompt: Prompt
        store: Store

    holder = Holder.model_validate({"prompt": {"template": "t"}, "store": Store(host="h")})  # pyright: ignore[reportCallIssue]
    assert holder.prompt == Prompt("t")
    assert holder.model_dump() == {"prompt": {"template": "t"}, "store": {"host": "h", "retries": 3}}


def test_connections_do_not_show_what_they_were_given() -> None:
    from emberflow.integrations.chat_models.openai import OpenAIChatModelConnection
    from emberflow.integrations.mcp.mcp_server import MCPServer

    connection = OpenAIChatModelConnection(api_key="k3y", base_url="http://o")
    shown = connection.model_dump_json()
    assert '"base_url":"http://o"' in shown
    assert "k3y" not in shown
    server = MCPServer("http://m", bearer_token="t0ken", auth=("ann", "pa55"))
    shown = server.model_dump_json()
    assert "t0ken" not in shown
    assert "pa55" not in shown
