"""Resources are described, not created; secrets stay where they are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentPlan,
    InputEvent,
    Resource,
    ResourceDescriptor,
    ResourceType,
    Secret,
    SerializableResource,
    action,
    chat_model_connection,
    tool,
)
from emberflow.errors import InvalidAgent, ResourceFailed
from emberflow.plan.agents.resources import resource_type


class Model(Resource):
    pass


class Ask(SerializableResource):
    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ask) and self.text == other.text

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def agent(name: str = "a") -> Agent:
    return Agent(name).add_action("x", [InputEvent], lambda event, ctx: None)


# secrets


def test_a_secret_is_never_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "hunter2")
    made = agent().add_resource(
        "m",
        ResourceType.CHAT_MODEL,
        ResourceDescriptor(clazz=Model, api_key=Secret("MODEL_KEY"), deep=[("x", Secret("MODEL_KEY"))]),
    )
    plan = AgentPlan.from_agent(made)
    for shown in (plan.to_json(), repr(plan), plan.explain(), plan.explain("mermaid")):
        assert "hunter2" not in shown
    provider = AgentPlan.from_json(plan.to_json()).resource_providers[ResourceType.CHAT_MODEL]["m"]
    assert provider.descriptor is not None
    assert provider.descriptor.arguments["api_key"].resolve() == "hunter2"
    assert provider.descriptor.arguments["deep"][0][1] == Secret("MODEL_KEY")


def test_a_secret_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("hunter2\n", encoding="utf-8")
    assert Secret(file=str(path)).resolve() == "hunter2"
    assert "hunter2" not in repr(Secret(file=str(path)))


def test_a_secret_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    with pytest.raises(ResourceFailed, match="'MODEL_KEY', which contains a secret, is not set"):
        Secret("MODEL_KEY").resolve()
    with pytest.raises(ResourceFailed, match="cannot be read"):
        Secret(file=str(tmp_path / "none")).resolve()


@pytest.mark.parametrize("given", [{}, {"name": "A", "file": "b"}])
def test_a_secret_has_one_source(given: dict[str, str]) -> None:
    with pytest.raises(InvalidAgent, match="either the name of an environment variable or a file"):
        Secret(**given)


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "openai_api_key", "password", "access_token", "secret", "openaiApiKey"]
)
def test_literal_secrets_are_rejected(name: str) -> None:
    with pytest.raises(InvalidAgent, match="is a secret written into the program") as caught:
        ResourceDescriptor(clazz=Model, **{name: "hunter2"})  # pyright: ignore[reportArgumentType]
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"max_tokens": "5"}, {"pad_token": "x"}, {"keyboard": "qwertz"}, {"api_key": ""}]
)
def test_names_that_only_look_like_secrets(given: dict[str, Any]) -> None:
    assert ResourceDescriptor(clazz=Model, **given).arguments == given


# descriptors


def test_descriptors_are_equal_by_their_contents() -> None:
    by_class = ResourceDescriptor(clazz=Model, n=1)
    by_name = ResourceDescriptor(clazz=f"{__name__}.Model", n=1)
    assert by_class == by_name
    assert hash(by_class) == hash(by_name)
    assert by_class == ResourceDescriptor(target_module=__name__, target_clazz="Model", arguments={"n": 1})
    assert by_class != ResourceDescriptor(clazz=Model, n=2)
    assert by_class != "Model"
    assert "Model, {'n': 1}" in repr(by_class)
    assert by_name.clazz is by_class.clazz


def test_a_descriptor_of_nothing() -> None:
    with pytest.raises(InvalidAgent, match="needs a class"):
        ResourceDescriptor(n=1)
    with pytest.raises(InvalidAgent, match="needs a class"):
        ResourceDescriptor(clazz="Model")
    with pytest.raises(ResourceFailed, match=r"nowhere\.Model cannot be imported"):
        _ = ResourceDescriptor(clazz="nowhere.Model").clazz


def test_a_class_that_only_the_worker_has() -> None:
    made = agent().add_resource("m", ResourceType.CHAT_MODEL, ResourceDescriptor(clazz="nowhere.Model", n=1))
    plan = AgentPlan.from_agent(made)
    assert AgentPlan.from_json(plan.to_json()).resource_providers == plan.resource_providers


# from agent and environment to plan


def test_an_agent_replaces_what_it_shares() -> None:
    shared = {ResourceType.PROMPT: {"ask": Ask("shared"), "other": Ask("other")}}
    plan = AgentPlan.from_agent(
        agent().add_resource("ask", ResourceType.PROMPT, Ask("own")), resources=shared
    )
    found = plan.resource_providers[ResourceType.PROMPT]
    assert {name: provider.instance for name, provider in found.items()} == {
        "ask": Ask("own"),
        "other": Ask("other"),
    }
    assert AgentPlan.from_json(plan.to_json()).resource_providers == plan.resource_providers


class Declares(Agent):
    @chat_model_connection
    @staticmethod
    def link() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=Model)

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b


class Inherits(Declares):
    link = None  # pyright: ignore[reportAssignmentType]


def test_declared_resources() -> None:
    made = Declares().add_action("x", [InputEvent], lambda event, ctx: None)
    found = AgentPlan.from_agent(made).resource_providers
    assert found[ResourceType.CHAT_MODEL_CONNECTION]["link"].describe() == "Model"
    assert found[ResourceType.TOOL]["add"].instance(1, 2) == 3
    with pytest.raises(InvalidAgent, match="defines the tool 'add' twice"):
        AgentPlan.from_agent(made.add_resource("add", ResourceType.TOOL, print))


def test_a_subclass_can_remove_a_resource() -> None:
    made = Inherits().add_action("x", [InputEvent], lambda event, ctx: None)
    assert AgentPlan.from_agent(made).resource_providers[ResourceType.CHAT_MODEL_CONNECTION] == {}


def test_what_cannot_be_pickled() -> None:
    with pytest.raises(InvalidAgent, match="the prompt 'p' is None"):
        AgentPlan.from_agent(agent().add_resource("p", ResourceType.PROMPT, None))
    with pytest.raises(InvalidAgent, match="the prompt 'p' cannot be sent to workers"):
        AgentPlan.from_agent(agent().add_resource("p", ResourceType.PROMPT, threading.Lock()))


def test_a_resource_function_may_take_the_agent() -> None:
    class WithSelf(Agent):
        url = "http://localhost"

        @action(InputEvent)
        @staticmethod
        def act(event: Any, ctx: Any) -> None: ...

        @chat_model_connection
        def connection(self) -> ResourceDescriptor:
            return ResourceDescriptor(dict, url=self.url)

    plan = AgentPlan.from_agent(WithSelf())
    descriptor = plan.resource_providers[ResourceType.CHAT_MODEL_CONNECTION]["connection"].descriptor
    assert descriptor is not None
    assert descriptor.arguments == {"url": "http://localhost"}


def test_a_resource_function_with_other_arguments_is_rejected() -> None:
    class WithMore(Agent):
        @chat_model_connection
        @staticmethod
        def connection(url: str) -> ResourceDescriptor:
            return ResourceDescriptor(dict, url=url)

    with pytest.raises(InvalidAgent, match="the function of the resource 'connection' takes url"):
        AgentPlan.from_agent(WithMore())


def test_a_resource_type_by_name() -> None:
    assert resource_type("chat_model") is resource_type("CHAT_MODEL") is ResourceType.CHAT_MODEL
    with pytest.raises(ResourceFailed, match="'chat' is not a resource type"):
        resource_type("chat")
