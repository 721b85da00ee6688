"""From an agent to its plan, and the plan to JSON and back."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentPlan,
    Configuration,
    ErrorHandling,
    Event,
    EventLogLevel,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Secret,
    action,
    prompt,
    tool,
)
from emberflow.errors import InvalidAgent
from emberflow.plan.agents.agent_plan import Action, Trigger

if TYPE_CHECKING:
    from somewhere import OnlyForCheckers  # pyright: ignore[reportMissingImports]


class Scored(Event):
    score: int


class Base(Agent):
    @action(InputEvent)
    @staticmethod
    def first(event: InputEvent, ctx: Any) -> None:
        ctx.append(("base", event.input))

    @action(InputEvent)
    @staticmethod
    def dropped(event: Event, ctx: Any) -> None: ...


class Child(Base):
    dropped = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, factor: int = 2) -> None:
        # Does not call the base class: a subclass need not.
        self.factor = factor

    @staticmethod
    @action("Scored", "score > 5", Event)
    async def second(event: Scored, ctx: Any) -> None:
        await asyncio.sleep(0)
        ctx.append(event.score)

    @action(Scored)
    def third(self, event: Event, ctx: Any, more: int = 1) -> None:
        ctx.append(self.factor * more)

    @prompt
    @staticmethod
    def ask() -> str:
        return "why?"

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b


def plain(event: Event, ctx: Any) -> None:
    ctx.append(event.type)


def for_checkers(event: Scored, ctx: OnlyForCheckers) -> None: ...


def again(plan: AgentPlan) -> AgentPlan:
    return AgentPlan.from_json(plan.to_json())


def test_actions_in_the_order_of_the_classes() -> None:
    plan = AgentPlan.from_agent(Child())
    assert list(plan.actions) == ["first", "second", "third"]
    assert plan.name == "Child"
    assert [item.is_async for item in plan.actions.values()] == [False, True, False]
    assert plan.is_async
    assert plan.actions_by_event == {"_input_event": ["first"], "Scored": ["second", "third"]}
    assert [item.name for item in plan.get_actions("Scored")] == ["second", "third"]
    assert plan.get_actions("nothing") == []
    assert [item.event_class for item in plan.actions.values()] == [InputEvent, Scored, None]


def test_triggers() -> None:
    by_type, by_expression, by_any = AgentPlan.from_agent(Child()).actions["second"].triggers
    assert by_type == Trigger(type="Scored")
    assert by_expression == Trigger(expression="score > 5")
    assert by_any.predicate is not None
    assert by_any.predicate(InputEvent(1)) is True
    assert str(by_any).endswith("_any_event()")
    assert Trigger.of("a.b-c", "here") == Trigger(type="a.b-c")
    assert Trigger.of(Scored, "here") == Trigger(type="Scored")


@pytest.mark.parametrize("condition", [5, "", "  ", None])
def test_invalid_triggers(condition: Any) -> None:
    with pytest.raises(InvalidAgent, match="is not a trigger condition"):
        AgentPlan.from_agent(Agent("a").add_action("x", [condition], plain))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "takes 0 parameters"),
        (lambda event: None, "takes 1 parameters"),
        (lambda a, b, c: None, "takes 3 parameters"),
        (lambda a, b, *, c: None, "takes 3 parameters"),
        (5, "cannot be called"),
    ],
)
def test_functions_that_cannot_be_actions(function: Any, message: str) -> None:
    with pytest.raises(InvalidAgent, match=message) as caught:
        AgentPlan.from_agent(Agent("a").add_action("x", [InputEvent], function))
    assert "agent 'a', action 'x'" in str(caught.value)


@pytest.mark.parametrize(
    "function", [lambda *all: None, lambda a, b, c=1: None, partial(lambda x, a, b: None, 1), print]
)
def test_functions_that_can_be_actions(function: Any) -> None:
    assert AgentPlan.from_agent(Agent("a").add_action("x", [InputEvent], function)).actions["x"]


def test_names_are_used_once() -> None:
    with pytest.raises(InvalidAgent, match="action 'first' is defined twice"):
        AgentPlan.from_agent(Child().add_action("first", [InputEvent], plain))
    with pytest.raises(InvalidAgent, match="has no trigger condition"):
        AgentPlan.from_agent(Agent("a").add_action("x", [], plain))


def test_annotations_of_others_do_not_matter() -> None:
    agent = Agent("a").add_action("x", [Event], for_checkers)
    assert AgentPlan.from_agent(agent).actions["x"].event_class is Scored


def test_callable_objects() -> None:
    class Waits:
        async def __call__(self, event: Event, ctx: Any) -> None: ...

    assert Action(name="x", triggers=(), function=Waits()).is_async


def test_a_plan_survives_a_json_round_trip() -> None:
    settings = Configuration().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP)
    settings.set(AgentConfigOptions.EVENT_LOG_LEVEL, "verbose").set_int("n", 5)
    agent = Child().add_action("fourth", ["a.b"], plain, limit=3, tags=("x", Secret("K")))
    agent.add_resource(
        "model", ResourceType.CHAT_MODEL, ResourceDescriptor(clazz=Scored, key=Secret(file="f"))
    )
    plan = AgentPlan.from_agent(agent, settings)
    read = again(plan)

    assert read.name == plan.name
    assert list(read.actions) == list(plan.actions)
    for name, made in plan.actions.items():
        other = read.actions[name]
        assert other.triggers == made.triggers
        assert other.config == made.config
        assert other.event_class is made.event_class
        assert other.is_async == made.is_async
    assert read.actions["first"].function is plan.actions["first"].function
    assert read.config == plan.config
    assert read.config.get(AgentExecutionOptions.ON_ERROR) is ErrorHandling.SKIP
    assert read.config.get(AgentConfigOptions.EVENT_LOG_LEVEL) is EventLogLevel.VERBOSE
    assert read.resource_providers == plan.resource_providers
    assert read.warnings == plan.warnings
    assert again(read).to_json() == read.to_json()


def test_methods_include_their_agent() -> None:
    read = again(AgentPlan.from_agent(Child(factor=21)))
    found: list[Any] = []
    read.actions["third"].function(Scored(score=1), found)
    assert found == [21]


def test_lambdas_and_closures_are_pickled_by_value() -> None:
    def make(factor: int) -> Any:
        def act(event: InputEvent, ctx: Any) -> None:
            ctx.append(event.input * factor)

        return act

    agent = Agent("a").add_action("closure", [InputEvent], make(3))
    agent.add_action(
        "lambda", [lambda event: event.type == "x", Event], lambda event, ctx: ctx.append("seen")
    )
    read = again(AgentPlan.from_agent(agent))
    found: list[Any] = []
    read.actions["closure"].function(InputEvent(5), found)
    read.actions["lambda"].function(InputEvent(5), found)
    predicate = read.actions["lambda"].triggers[0].predicate
    assert predicate is not None
    assert [predicate(Event(type="x")), predicate(Event(type="y"))] == [True, False]
    assert found == [15, "seen"]


def test_names_of_main_are_pickled_by_value() -> None:
    program = """
        from emberflow.agents import *
        FACTOR = 4
        class Scored(Event):
            score: int
        class Mine(Agent):
            @action(InputEvent)
            @staticmethod
            def first(event, ctx): ctx.send_event(Scored(score=FACTOR * event.input))
            @action(Scored)
            def second(self, event: Scored, ctx): ctx.send_event(OutputEvent(event.score))
        print(AgentPlan.from_agent(Mine()).to_json())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    plan = AgentPlan.from_json(done.stdout)

    class Context:
        def __init__(self) -> None:
            self.sent: list[Any] = []

        def send_event(self, event: Event) -> None:
            self.sent.append(event)

    ctx = Context()
    plan.actions["first"].function(InputEvent(2), ctx)
    kind = plan.actions["second"].event_class
    assert kind is not None
    assert isinstance(ctx.sent[0], kind)
    plan.actions["second"].function(ctx.sent[0], ctx)
    assert ctx.sent[1] == OutputEvent(8)


def test_what_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()
    agent = Agent("a").add_action("x", [InputEvent], lambda event, ctx: lock.acquire())
    with pytest.raises(InvalidAgent, match="cannot be sent to workers"):
        AgentPlan.from_agent(agent).to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an agent plan"),
        ("[]", "is not an agent plan"),
        ('"plan"', "is not an agent plan"),
        ('{"version": 1}', "is not an agent plan"),
        ('{"version": 2}', "format 2 cannot be read"),
        ('{"version": 1, "actions": [{"name": 1}]}', "is not an agent plan"),
    ],
)
def test_invalid_plans(text: str, message: str) -> None:
    with pytest.raises(InvalidAgent, match=message):
        AgentPlan.from_json(text)


def test_functions_that_no_longer_exist() -> None:
    body = json.loads(AgentPlan.from_agent(Base()).to_json())
    body["actions"][0]["function"]["qualname"] = "Base.gone"
    with pytest.raises(InvalidAgent, match=r"Base\.gone, which does not exist"):
        AgentPlan.from_json(json.dumps(body))
    body["actions"][0]["function"] = {"name": "f", "cloudpickle": "AAAA"}
    with pytest.raises(InvalidAgent, match="'f' inside the plan cannot be read"):
        AgentPlan.from_json(json.dumps(body))
