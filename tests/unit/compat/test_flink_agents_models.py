"""Chat models of Flink Agents' programs are called with the settings that its classes have by default."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, InputEvent, RunnerContext
from emberflow.agents.yaml.registry import load_agents
from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.compat.finder import installed
from emberflow.compat.flink_agents.execution_environment import AgentsExecutionEnvironment
from emberflow.compat.flink_agents.package import FLINK_AGENTS
from emberflow.compat.flink_agents.resource_descriptor import ResourceDescriptor
from emberflow.compat.flink_agents.resource_name import ResourceName
from emberflow.errors import InvalidAgent
from emberflow.plan.agents.resource_arguments import argument_problem
from emberflow.plan.agents.resources import ResourceType
from tests.support.ollama_server import OllamaServer, Reply, Rule

NAMES = ResourceName.ChatModel
OLLAMA = {"temperature": 0.75, "num_ctx": 2048, "think": True, "extract_reasoning": True}
OPENAI = {"temperature": 0.1}
ANTHROPIC = {"max_tokens": 1024, "temperature": 0.1}
SETUPS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("ollama", NAMES.OLLAMA_SETUP, {"model": "q"}, {"model": "q", **OLLAMA}),
    ("openai", NAMES.OPENAI_COMPLETIONS_SETUP, {}, {"model": "gpt-4o-mini", **OPENAI}),
    ("vllm", NAMES.VLLM_SETUP, {"model": "q"}, {"model": "q", **OPENAI}),
    ("azure_openai", NAMES.AZURE_OPENAI_SETUP, {"model": "q"}, {"model": "q"}),
    ("anthropic", NAMES.ANTHROPIC_SETUP, {}, {"model": "claude-sonnet-4-20250514", **ANTHROPIC}),
    ("anthropic", NAMES.ANTHROPIC_SETUP, {"temperature": 0.7}, {"temperature": 0.7}),
    (
        "ollama",
        NAMES.OLLAMA_SETUP,
        {"model": "q", "think": "low", "num_ctx": 9},
        {"think": "low", "num_ctx": 9},
    ),
]


def settings_of(descriptor: Any) -> dict[str, Any]:
    return descriptor.clazz(**{"connection": "c", **descriptor.arguments}).model_kwargs


@pytest.mark.parametrize(("alias", "path", "given", "sent"), SETUPS)
def test_the_defaults_are_those_of_flink_agents(
    alias: str, path: str, given: dict[str, Any], sent: dict[str, Any], tmp_path: Path
) -> None:
    assert sent.items() <= settings_of(ResourceDescriptor(clazz=path, **given)).items()

    module, _, name = path.rpartition(".")
    with installed(FLINK_AGENTS):
        imported = getattr(importlib.import_module(module), name)
    assert sent.items() <= imported(connection="c", **given).model_kwargs.items()

    file = tmp_path / "agents.yaml"
    entry = json.dumps({"name": "m", "clazz": alias, "connection": "c", **given})
    model = json.dumps({"clazz": alias, "connection": "c", **given})
    file.write_text(
        f'agents: [{{name: a, actions: [], chat_model_setups: [{entry}], chat_model_connections: [{{name: c, clazz: "{alias}"}}]}}]\n'
        f'react_agents: [{{name: b, chat_model: {model}, chat_model_connections: [{{name: c, clazz: "{alias}"}}]}}]\n'
    )
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local").load_yaml(file)
    for agent in env.agents.values():
        for described in agent.resources[ResourceType.CHAT_MODEL].values():
            assert sent.items() <= settings_of(described).items()


def test_programs_for_emberflow_leave_them_to_the_service(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(
        "agents: [{name: a, actions: [], chat_model_setups: [{name: m, clazz: openai, connection: c, model: q}],"
        " chat_model_connections: [{name: c, clazz: openai}]}]"
    )
    described = load_agents(tmp_path / "agents.yaml")["a"].resources[ResourceType.CHAT_MODEL]["m"]
    assert settings_of(described) == {"model": "q"}


@pytest.mark.parametrize("path", [NAMES.OPENAI_COMPLETIONS_CONNECTION, NAMES.VLLM_CONNECTION])
def test_whether_a_client_is_reused_may_be_said(path: str) -> None:
    described = ResourceDescriptor(clazz=path, reuse_client=False, max_retries=2)
    assert described.clazz(**described.arguments).max_retries == 2


@pytest.mark.parametrize(
    ("connection", "setup", "said"),
    [
        ({"api_base_ur": "http://127.0.0.1"}, {}, "connection 'c': .*did you mean 'api_base_url'"),
        ({"timeout": "soon"}, {}, "connection 'c': 'timeout' is 'soon'"),
        ({"request_timeout": -1}, {}, "connection 'c': 'request_timeout' is -1"),
        ({"max_retries": 0.5}, {}, "connection 'c': 'max_retries' is 0.5"),
        ({}, {"temprature": 0.1}, "chat model 'm': .*no setting 'temprature'; did you mean 'temperature'"),
        ({}, {"temperature": "hot"}, "chat model 'm': 'temperature' is 'hot'"),
        ({}, {"max_tokens": True}, "chat model 'm': 'max_tokens' is True"),
        ({}, {"skills": ["math"]}, "chat model 'm' lists skills, but the agent has none"),
        ({}, {"tools": "search"}, "chat model 'm': 'tools' must be a list"),
        ({}, {"additional_kwargs": []}, r"chat model 'm': 'additional_kwargs' is \[\]"),
    ],
)
def test_mistakes_in_a_model_are_named_when_the_agent_is_applied(
    connection: dict[str, Any], setup: dict[str, Any], said: str
) -> None:
    described = ResourceDescriptor(clazz=NAMES.OPENAI_COMPLETIONS_CONNECTION, **connection)
    model = ResourceDescriptor(clazz=NAMES.OPENAI_COMPLETIONS_SETUP, connection="c", **setup)
    agent = Agent().add_resource("c", ResourceType.CHAT_MODEL_CONNECTION, described)
    agent.add_resource("m", ResourceType.CHAT_MODEL, model)

    def act(event: InputEvent, ctx: RunnerContext) -> None: ...

    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(InvalidAgent, match=said):
        env.from_list([{"value": 0}]).apply(agent.add_action("act", [InputEvent], act))


@pytest.mark.parametrize("name", ["timeout", "request_timeout"])
def test_the_timeout_of_openai_has_two_names(name: str) -> None:
    described = ResourceDescriptor(clazz=NAMES.OPENAI_COMPLETIONS_CONNECTION, arguments={name: 7})
    assert described.clazz(**described.arguments).timeout == 7


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (NAMES.OLLAMA_CONNECTION, {"request_timeout": None}),
        (NAMES.OLLAMA_CONNECTION, {"request_timeout": 0}),
        (NAMES.OPENAI_COMPLETIONS_CONNECTION, {"timeout": None}),
    ],
)
def test_a_connection_may_wait_for_ever(path: str, given: dict[str, Any]) -> None:
    described = ResourceDescriptor(clazz=path, arguments=given)
    assert argument_problem(described.clazz, described.arguments) is None


def test_arguments_that_only_flink_agents_has_are_accepted_in_files(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(
        "chat_model_connections: [{name: c, clazz: openai, reuse_client: false, request_timeout: 7}]"
    )
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local").load_yaml(
        tmp_path / "agents.yaml"
    )
    described = env.resources[ResourceType.CHAT_MODEL_CONNECTION]["c"]
    assert described.clazz(**described.arguments).timeout == 7


ACTION = """
from flink_agents.api.chat_message import ChatMessage
from flink_agents.api.events.event import InputEvent, OutputEvent
from flink_agents.api.resource import ResourceType

async def ask(event, ctx):
    model = ctx.get_resource("m", ResourceType.CHAT_MODEL)
    ctx.send_event(OutputEvent(output=model.chat([ChatMessage(role="user", content=event.attributes["input"])]).content))
"""
AGENT = """
agents:
  - name: asking
    actions: [{name: ask, function: "asks_ollama:ask", trigger_conditions: [input]}]
    chat_model_connections: [{name: c, clazz: ollama}]
    chat_model_setups: [{name: m, clazz: ollama, connection: c, model: tiny}]
"""


def test_a_yaml_file_of_flink_agents_runs_without_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("EMBERFLOW_")]:
        monkeypatch.delenv(name)
    file, inputs = tmp_path / "agents.yaml", tmp_path / "in.jsonl"
    (tmp_path / "asks_ollama.py").write_text(ACTION)
    file.write_text(AGENT)
    inputs.write_text('"weather"\n')
    with OllamaServer([Rule("weather", Reply("It rains."))]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        as_there = ["--as", "flink-agents", str(file)]
        assert main(["run", *as_there, "--engine", "local", "--input", str(inputs)]) == ExitCode.OK
        asked = server.requests[-1]
    assert json.loads(capsys.readouterr().out) == {"key": 1, "output": "It rains."}
    assert asked["options"] == {"temperature": 0.75, "num_ctx": 2048}
    assert asked["think"] is True
    assert main(["explain", *as_there]) == ExitCode.OK
    assert "ask" in capsys.readouterr().out
    assert main(["run", "--as", "pyflink", str(file), "--input", str(inputs)]) == ExitCode.BAD_PROGRAM
    assert "--as pyflink is for Python programs" in capsys.readouterr().err
