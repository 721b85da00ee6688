"""The shipped JSON Schema is the one that files are checked against."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest

from emberflow.agents.yaml.nodes import read_text
from emberflow.agents.yaml.schema import check, yaml_schema
from emberflow.errors import InvalidAgent

ACTION = "{name: a, function: 'm:f', trigger_conditions: [input]}"

GOOD = {
    "shared resources only": "prompts: [{name: p, text: hi}]",
    "an agent without anything": "agents: [{name: a}]",
    "sections without entries": "agents:\ntools:\nactions: []",
    "an agent": f"agents: [{{name: a, description: d, actions: [{ACTION}, shared]}}]\nactions: [{ACTION}]",
    "nulls": "agents: [{name: a, description: null, actions: [{name: a, function: null, type: null, config: null, "
    "trigger_conditions: [x]}]}]",
    "messages": "prompts: [{name: p, messages: [{content: hi}, {role: system, content: ''}]}]",
    "arguments of any form": "chat_model_setups: [{name: m, clazz: ollama, temperature: 0.5, options: {a: [1]}}]",
    "a Java tool": "tools: [{name: t, type: java, function: 'a.B:c', parameter_types: [int]}]",
    "injected arguments": "tools: [{name: t, function: 'm:f', injected_args: {a: {source: config, key: k}, b: {}}}]",
    "skills": "skills: [{name: s, paths: [a], urls: [b], package: [{package: p, resource: r}], classpath: [c]}]",
    "an agent of a model": "react_agents: [{name: a, chat_model: m, prompt: p, max_steps: 2, sub_agents: [b]}]",
    "an agent of a described model": "react_agents: [{name: a, chat_model: {clazz: x.Y, k: 1}, prompt: {text: t}, "
    "output_schema: {type: object}}]",
    "config": "agents: [{name: a, actions: [{name: a, function: 'm:f', trigger_conditions: [x], config: {a: {b: 1}}}]}]",
}

BAD = {
    "a list": "[1]",
    "text": "hello",
    "an unknown key": "agent: []",
    "an unknown key of an agent": "agents: [{name: a, actoins: []}]",
    "an agent without a name": "agents: [{description: d}]",
    "an agent that is text": "agents: [helper]",
    "agents that are a mapping": "agents: {name: a}",
    "a name that is a number": "agents: [{name: 1}]",
    "an empty name": "agents: [{name: ' '}]",
    "an action without conditions": "actions: [{name: a, function: 'm:f'}]",
    "an empty list of conditions": "actions: [{name: a, function: 'm:f', trigger_conditions: []}]",
    "a condition that is a boolean": "actions: [{name: a, function: 'm:f', trigger_conditions: [true]}]",
    "an empty condition": "actions: [{name: a, function: 'm:f', trigger_conditions: ['']}]",
    "conditions that are text": "actions: [{name: a, function: 'm:f', trigger_conditions: input}]",
    "a shared action that is a name": "actions: [a]",
    "an unknown language": "tools: [{name: t, function: 'm:f', type: pyhton}]",
    "a prompt without text": "prompts: [{name: p}]",
    "a prompt with both": "prompts: [{name: p, text: a, messages: [{content: b}]}]",
    "an empty prompt": "prompts: [{name: p, text: ''}]",
    "a prompt without messages": "prompts: [{name: p, messages: []}]",
    "an unknown role": "prompts: [{name: p, messages: [{role: robot, content: a}]}]",
    "an unknown source": "tools: [{name: t, function: 'm:f', injected_args: {a: {source: memory}}}]",
    "skills without a source": "skills: [{name: s}]",
    "a package without a folder": "skills: [{name: s, package: [{package: p}]}]",
    "an agent without a model": "react_agents: [{name: a}]",
    "an agent with a number for a model": "react_agents: [{name: a, chat_model: 1}]",
    "an agent of a model with actions": "react_agents: [{name: a, chat_model: m, actions: []}]",
    "a fraction of a step": "react_agents: [{name: a, chat_model: m, max_steps: 1.5}]",
    "a model without a class": "chat_model_setups: [{name: m, connection: c}]",
    "a prompt with an unknown key": "prompts: [{name: p, text: a, role: user}]",
}


def errors_of(text: str) -> list[Any]:
    validator: Any = jsonschema.Draft202012Validator(yaml_schema())
    return list(validator.iter_errors(read_text(text, "f.yaml").plain()))


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(yaml_schema())


@pytest.mark.parametrize("case", GOOD)
def test_accepts(case: str) -> None:
    assert errors_of(GOOD[case]) == []
    check(read_text(GOOD[case], "f.yaml"))


@pytest.mark.parametrize("case", BAD)
def test_refuses_what_any_validator_refuses(case: str) -> None:
    assert errors_of(BAD[case]) != []
    with pytest.raises(InvalidAgent) as raised:
        check(read_text(BAD[case], "f.yaml"))
    assert re.match(r"f\.yaml:1:\d+: ", raised.value.message)


MESSAGES = {
    "agents:\n  - name: a\n    actoins: []": "f.yaml:3:5: an entry of 'agents' (a) has no key 'actoins'; did you mean 'actions'?",
    "agents:\n  - name: a\n    actions:\n      - {name: b, trigger_conditions: [true]}": "f.yaml:4:40: an entry of "
    "'trigger_conditions' must be a string, got True",
    "tools: [{name: t, type: pyhton}]": "f.yaml:1:25: 'type' cannot be 'pyhton'; did you mean 'python'?",
    "prompts: [{name: p}]": "f.yaml:1:11: an entry of 'prompts' (p) needs exactly one of 'text', 'messages'",
    "agents: [helper]": "f.yaml:1:10: an entry of 'agents' must be a mapping, got 'helper'",
    "actions: [{name: a}]": "f.yaml:1:11: an entry of 'actions' (a) lacks the required key 'trigger_conditions'",
}


@pytest.mark.parametrize("text", MESSAGES)
def test_says_what_is_wrong(text: str) -> None:
    with pytest.raises(InvalidAgent) as raised:
        check(read_text(text, "f.yaml"))
    assert raised.value.message == MESSAGES[text]


FLINK_AGENTS = {
    "": "agents prompts tools skills actions chat_model_connections chat_model_setups embedding_model_connections "
    "embedding_model_setups vector_stores mcp_servers",
    "Agent": "name description prompts tools skills actions chat_model_connections chat_model_setups "
    "embedding_model_connections embedding_model_setups vector_stores mcp_servers",
    "Action": "name function trigger_conditions config type",
    "Descriptor": "name clazz type",
    "Prompt": "name text messages",
    "Message": "role content",
    "Skills": "name paths urls classpath package",
    "PackageSkill": "package resource",
    "Tool": "name function type parameter_types injected_args",
}
"""The keys of Flink Agents' YAML; ours has them all."""
OURS = {"": {"react_agents"}, "Agent": {"sub_agents"}}


@pytest.mark.parametrize("part", FLINK_AGENTS)
def test_the_format_has_the_keys_of_flink_agents(part: str) -> None:
    schema = yaml_schema()
    described = schema["$defs"][part] if part else schema
    assert set(described["properties"]) - OURS.get(part, set()) == set(FLINK_AGENTS[part].split())
