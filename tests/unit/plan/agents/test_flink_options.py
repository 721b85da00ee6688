"""Options that Flink Agents' programs set: files of settings, levels of event types, loggers, functions by name."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentPlan,
    AgentsExecutionEnvironment,
    Configuration,
    Event,
    EventLogLevel,
    InputEvent,
    LoggerType,
    OutputEvent,
    PythonFunction,
    RunnerContext,
    ShortTermMemoryTtlVisibility,
    action,
)
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.observability.event_reader import read_events
from emberflow.plan.agents.options import level_of_type


def shout(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(Event(type="shop.order.made", attributes={"text": "x" * 50}))
    ctx.send_event(OutputEvent(event.input.upper()))


class Stub(Agent):
    @action(InputEvent, target=PythonFunction(__name__, "shout"))
    @staticmethod
    def stub(event: InputEvent, ctx: RunnerContext) -> None:
        raise NotImplementedError


def run(agent: Agent, **options: Any) -> list[Any]:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    for key, value in options.items():
        env.get_config().set(key.replace("__", "-").replace("_", "."), value)
    outputs = env.from_list([{"key": "k", "value": "a"}]).apply(agent).to_list()
    env.execute()
    return outputs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("settings.json", '{"max-steps": 7, "event-log": {"level": "VERBOSE"}}'),
        ("config.yaml", "jobmanager: {rpc: 1}\nagent:\n  max-steps: 7\n  event-log:\n    level: VERBOSE\n"),
        ("flat.yml", "max-steps: 7\nevent-log.level: verbose\n"),
    ],
)
def test_settings_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = Configuration().load_from_file(tmp_path / name)
    assert found.get(AgentExecutionOptions.MAX_STEPS) == 7
    assert found.get(AgentConfigOptions.EVENT_LOG_LEVEL) is EventLogLevel.VERBOSE


@pytest.mark.parametrize(
    ("text", "problem"),
    [("max-step: 7", "did you mean 'max-steps'"), ("a: [", "cannot be read"), ("- a", "an object of keys")],
)
def test_files_with_mistakes(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InvalidArgument, match=problem):
        Configuration().load_from_file(tmp_path / "config.yaml")


def test_the_level_of_a_type_is_found_by_its_dotted_name() -> None:
    config = Configuration().set("event-log.type.shop.level", "OFF")
    config.set("event-log.type.shop.order.made.level", EventLogLevel.VERBOSE)
    config.set_str("event-log.type._input_event.level", "standard")
    levels = {
        name: level_of_type(config, name).value
        for name in ("shop.order.made", "shop.order.sent", "shop", "shopping", "_input_event")
    }
    assert levels == {
        "shop.order.made": "VERBOSE", "shop.order.sent": "OFF", "shop": "OFF", "shopping": "STANDARD",
        "_input_event": "STANDARD",
    }  # fmt: skip
    with pytest.raises(InvalidArgument, match="cannot be 'loud'"):
        config.set("event-log.type.shop.level", "loud")
    config.set_str("event-log.type.shop.level", "loud")
    with pytest.raises(InvalidArgument, match="cannot be 'loud'"):
        AgentPlan.from_agent(Stub(), config)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("event-log.type.x.levl", "event-log.type.x.level"),
        ("event-log.type.shop.order", "event-log.type.shop.order.level"),
        ("event-log.type.", "event-log.type.<type>.level"),
    ],
)
def test_the_only_option_of_a_type_is_its_level(tmp_path: Path, key: str, meant: str) -> None:
    config, said = Configuration(), f"there is no option '{key}'; did you mean '{meant}'?"
    (tmp_path / "settings.json").write_text(json.dumps({key: "OFF"}))
    for change in (
        lambda: config.set(key, "OFF"),
        lambda: config.set_str(key, "OFF"),
        lambda: config.load(tmp_path / "settings.json"),
    ):
        with pytest.raises(InvalidArgument, match=re.escape(said)):
            change()


@pytest.mark.parametrize("level", ["STANDARD", "OFF"])
def test_types_are_logged_at_their_levels(tmp_path: Path, level: str) -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    config = (
        env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path)).set("event-log.level", level)
    )
    config.set(AgentConfigOptions.EVENT_LOG_MAX_STRING_LENGTH, 10).set("event-log.type.shop.level", "VERBOSE")
    config.set("event-log.type._output_event.level", "OFF")
    env.from_list([{"key": "k", "value": "a" * 50}]).apply(Stub()).to_list()
    env.execute()
    found = {event["type"]: event["attributes"] for event in read_events(tmp_path)}
    assert found.pop("shop.order.made") == {"text": "x" * 50}
    assert [*found] == ([] if level == "OFF" else ["_input_event"])
    assert "a" * 50 not in str(found)


@pytest.mark.parametrize("pretty", [False, True])
def test_events_through_logging(caplog: pytest.LogCaptureFixture, pretty: bool) -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    config = env.get_config().set(AgentConfigOptions.EVENT_LOGGER_TYPE, LoggerType.SLF4J)
    config.set(AgentConfigOptions.PRETTY_PRINT, pretty)
    env.from_list([{"key": "k", "value": "a"}]).apply(Stub()).to_list()
    with caplog.at_level(logging.INFO, "emberflow.event_log"):
        env.execute()
    texts = [record.getMessage() for record in caplog.records if record.name == "emberflow.event_log"]
    assert [json.loads(text)["type"] for text in texts] == [
        "_input_event",
        "shop.order.made",
        "_output_event",
    ]
    assert ("\n" in texts[0]) is pretty


def test_the_job_has_the_name_of_its_identifier() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    env.get_config().set(AgentConfigOptions.JOB_IDENTIFIER, "shop")
    env.from_list([{"key": "k", "value": "a"}]).apply(Stub()).to_list()
    assert "shop" in repr(env.execute())


def test_a_text_that_is_none_is_not_set() -> None:
    config = Configuration()
    config.set_str("mine", "a")
    config.set_str("mine", None)
    assert (config.get_str("mine"), config.get_str("mine", "b")) == (None, "b")


def test_visibility_of_expired_memory_is_accepted() -> None:
    option = AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_VISIBILITY
    found = Configuration().set(option, "return_expired_if_not_cleaned_up").get(option)
    assert found is ShortTermMemoryTtlVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP


def test_a_function_named_by_module_and_name_runs_in_place_of_the_stub() -> None:
    assert run(Stub()) == [{"k": "A"}]
    function = PythonFunction.from_callable(shout)
    assert function.as_callable() is shout
    agent = Agent("a").add_action("shout", [InputEvent], function)
    assert run(agent) == [{"k": "A"}]
    plan = AgentPlan.from_agent(agent)
    assert (plan.agent_name, plan.actions["shout"].trigger_conditions) == ("a", ["_input_event"])
    assert AgentPlan.from_json(plan.to_json()) == plan


def test_functions_that_cannot_be_named() -> None:
    with pytest.raises(InvalidAgent, match="cannot be imported by name"):
        PythonFunction.from_callable(lambda: None)
    with pytest.raises(InvalidAgent, match="no_such"):
        PythonFunction(__name__, "no_such").as_callable()
    with pytest.raises(InvalidAgent, match="does not name a function"):
        PythonFunction("", "x")
    with pytest.raises(InvalidAgent, match="is a PythonFunction"):
        action(InputEvent, target=shout)  # pyright: ignore[reportArgumentType]


def test_a_list_is_read_when_the_program_is_executed() -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    inputs = [{"key": "k", "value": "a"}]
    outputs = env.from_list(inputs=inputs).apply(Stub()).to_list()
    inputs.append({"key": "k", "value": "b"})
    env.execute()
    assert outputs == [{"k": "A"}, {"k": "B"}]
