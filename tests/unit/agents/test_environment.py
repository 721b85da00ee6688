"""The agents' environment: inputs, outputs, settings and shared resources, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    Event,
    InputEvent,
    OutputEvent,
    ResourceType,
    RunnerContext,
)
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.streams import StreamExecutionEnvironment, Types


def repeat(event: Event, ctx: RunnerContext) -> None:
    ctx.short_term_memory.set("count", ctx.short_term_memory.get("count", 0) + 1)
    ctx.send_event(OutputEvent((event.get_attr("input"), ctx.short_term_memory.get("count"))))


def repeating() -> Agent:
    return Agent("repeating").add_action("repeat", [InputEvent], repeat)


def local(**settings: Any) -> AgentsExecutionEnvironment:
    return AgentsExecutionEnvironment.get_execution_environment(engine="local", **settings)


def test_lists_in_and_out() -> None:
    env = local()
    inputs = [{"key": "a", "value": 1}, {"k": "b", "v": 2}, {"key": "a", "value": None}]
    results = env.from_list(inputs).apply(repeating()).to_list()
    assert results == [], "nothing runs before execute()"
    env.execute()
    assert results == [{"a": (1, 1)}, {"b": (2, 1)}, {"a": (None, 2)}]


def test_a_stream_of_outputs_may_have_a_type() -> None:
    env = local()
    inputs = env.env.from_collection(["a"]).key_by(lambda value: value)
    outputs = env.from_datastream(inputs).apply(repeating()).to_datastream(output_type=Types.STRING())
    assert outputs.get_type() == Types.STRING()


def test_inputs_without_a_key_share_nothing() -> None:
    env = local()
    results = env.from_list([{"value": "x"}, {"value": "x"}, {"v": "y"}]).apply(repeating()).to_list()
    env.execute()
    assert results == [{"_input_0": ("x", 1)}, {"_input_1": ("x", 1)}, {"_input_2": ("y", 1)}]


@pytest.mark.parametrize("item", [5, {}, {"key": 1}, {"key": 1, "value": 2, "more": 3}, {"key": 1, "v": 2}])
def test_inputs_of_another_form_are_named(item: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        local().from_list([{"value": 1}, item])
    assert f"input 1 is {item!r}" in str(caught.value)
    assert "{'key': 'ann', 'value': 'hello'}; the key may be left out" in str(caught.value)


def test_streams_in_and_out() -> None:
    stream_env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env = AgentsExecutionEnvironment.get_execution_environment(stream_env)
    assert env.env is stream_env
    stream = stream_env.from_collection(["a", "b", "a"])
    outputs = env.from_datastream(stream, lambda value: value).apply(repeating()).to_datastream()
    assert sorted(outputs.execute_and_collect()) == [("a", 1), ("a", 2), ("b", 1)]


def test_a_keyed_stream_needs_no_selector() -> None:
    env = local()
    stream = env.env.from_collection([1, 2, 3]).key_by(lambda value: value % 2)
    results = env.from_datastream(stream).apply(repeating()).to_list()
    env.execute()
    assert sorted(results) == [(1, 1), (2, 1), (3, 2)]


def test_tables_in_and_out() -> None:
    rows = [{"user": "ann", "text": "x"}, {"user": "bob", "text": "y"}, {"user": "ann", "text": "z"}]
    frame = local().from_dataframe(rows, "user").apply(repeating()).to_dataframe()
    assert frame.columns == ["user", "output"]
    found = [(row["user"], json.loads(row["output"])) for row in frame]
    assert sorted(found, key=str) == sorted(
        [("ann", [rows[0], 1]), ("bob", [rows[1], 1]), ("ann", [rows[2], 2])], key=str
    )


def test_an_agent_may_have_several_outputs() -> None:
    env = local()
    builder = env.from_list([{"key": 1, "value": 2}]).apply(repeating())
    as_list = builder.to_list()
    mapped: list[Any] = []
    builder.to_datastream().map(lambda value: mapped.append(value) or value).print()
    env.execute()
    assert as_list == [{1: (2, 1)}]
    assert mapped == [(2, 1)]


def test_settings_reach_agents_that_are_applied_later(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"max-steps": 3}')
    env = local()
    config = env.get_config(str(tmp_path / "settings.json"))
    assert config is env.get_config()

    def read(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(ctx.config.get(AgentExecutionOptions.MAX_STEPS)))

    agent = Agent("reads").add_action("read", [InputEvent], read)
    first = env.from_list([{"value": 0}]).apply(agent).to_list()
    env.get_config().set(AgentExecutionOptions.MAX_STEPS, 9)
    second = env.from_list([{"value": 0}]).apply(agent).to_list()
    env.execute()
    assert (first, second) == ([{"_input_0": 3}], [{"_input_0": 9}])


def test_an_agents_own_resource_wins() -> None:
    def read(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(
            OutputEvent([ctx.get_resource(name, ResourceType.PROMPT) for name in ("shared", "both")])
        )

    env = local()
    env.add_resource("shared", ResourceType.PROMPT, "of all").add_resource(
        "both", ResourceType.PROMPT, "of all"
    )
    agent = Agent("reads").add_action("read", [InputEvent], read)
    agent.add_resource("both", ResourceType.PROMPT, "own")
    results = env.from_list([{"value": 0}]).apply(agent).to_list()
    env.execute()
    assert results == [{"_input_0": ["of all", "own"]}]
    with pytest.raises(InvalidAgent, match="the environment defines the prompt 'both' twice"):
        env.add_resource("both", ResourceType.PROMPT, "again")


def refusal(call: Any) -> str:
    with pytest.raises(InvalidArgument) as caught:
        call()
    return str(caught.value)


def test_mistakes_are_explained() -> None:
    env, other = local(), local()
    stream = env.env.from_collection([1])
    assert "call .apply(agent) before" in refusal(env.from_list([{"value": 1}]).to_list)
    builder = env.from_list([{"value": 1}]).apply(repeating())
    assert "an agent was applied already" in refusal(lambda: builder.apply(repeating()))
    wrong: Any = Agent
    assert "is not an agent; did you mean Agent()?" in refusal(
        lambda: env.from_list([{"value": 1}]).apply(wrong)
    )
    assert "the stream has no keys" in refusal(lambda: env.from_datastream(stream))
    assert "belongs to another environment" in refusal(lambda: other.from_datastream(stream, len))  # pyright: ignore[reportArgumentType]

    make: Any = AgentsExecutionEnvironment.get_execution_environment
    assert "the engine and its settings are already chosen" in refusal(lambda: make(env.env, parallelism=2))
    assert "'local' is not a StreamExecutionEnvironment" in refusal(lambda: make("local"))


def test_an_option_of_the_engine() -> None:
    env = local()
    assert env.set_option("call_store", "s3://bucket/calls") is env
    with pytest.raises(InvalidArgument, match="did you mean 'call_store'"):
        env.set_option("call_stor", "s3://bucket/calls")
    with pytest.raises(InvalidArgument, match="is an option of the engine, not of agents") as caught:
        env.get_config().set_str("call_store", "s3://bucket/calls")
    assert caught.value.way_out == "set it on the environment: env.set_option('call_store', …)"
