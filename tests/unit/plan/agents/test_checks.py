"""Mistakes in agents are reported when the plan is compiled; correct agents get no warnings."""

from __future__ import annotations

import functools
import logging
from typing import Any, ClassVar

import pytest

from emberflow import agents
from emberflow.agents import Agent, AgentPlan, Event, EventType, InputEvent, OutputEvent, action
from emberflow.errors import InvalidAgent

URGENT = "urgent"


class Scored(Event):
    score: int
    reason: str = ""


class Stored(Event):
    pass


class Free(Event):
    EVENT_TYPE: ClassVar[str] = "free"

    def __init__(self, **values: Any) -> None:
        self.attributes = values


def start(event: InputEvent, ctx: Any) -> None:
    ctx.send_event(OutputEvent(event.input))


def warnings_of(agent: Agent) -> list[str]:
    return list(AgentPlan.from_agent(agent).warnings)


def refused(agent: Agent) -> str:
    with pytest.raises(InvalidAgent) as caught:
        AgentPlan.from_agent(agent)
    return str(caught.value)


def agent_of(*actions: tuple[Any, Any], name: str = "Triage") -> Agent:
    made = Agent(name)
    for index, (conditions, function) in enumerate(actions):
        made.add_action(f"step{index}", conditions, function)
    return made


# correct agents


class Triage(Agent):
    @action(InputEvent)
    @staticmethod
    def score(event: InputEvent, ctx: Any) -> None:
        ctx.send_event(Scored(score=3))

    @action("type == 'Scored' && score > 2", Stored)
    @staticmethod
    async def escalate(event: Event, ctx: Any) -> None:
        ctx.send_event(Stored() if event.get_attr("score") else OutputEvent(1))


class ByMethods(Agent):
    """Helpers of the agent, of the module, and events by name."""

    @action(EventType.InputEvent)
    def first(self, event: Event, ctx: Any) -> None:
        self.forward(ctx, InputEvent.from_event(event).input)

    def forward(self, ctx: Any, value: Any) -> None:
        send(ctx, value)

    @action(Scored)
    def second(self, event: Scored, ctx: Any) -> None:
        found = agents.Event(type=URGENT, attributes={"level": event.score})
        ctx.send_event(found)

    @action("urgent")
    def third(self, event: Event, ctx: Any) -> None:
        from tests.unit.plan.agents.test_checks import Stored as Kept

        ctx.send_event(Kept())

    @action("level > 3", "type == 'Stored'")
    def fourth(self, event: Event, ctx: Any) -> None:
        ctx.send_event(InputEvent(1))


def send(ctx: Any, value: Any) -> None:
    ctx.send_event(Scored(score=value))


class Dynamic(Agent):
    """Types that are known only at run time."""

    KINDS: ClassVar[dict[str, str]] = {"a": "kind_a"}

    @action(InputEvent)
    @staticmethod
    def route(event: InputEvent, ctx: Any) -> None:
        ctx.send_event(Event(type=f"order_{event.input}"))

    @action("order_new", "order_paid", "orders_new")
    @staticmethod
    def handle(event: Event, ctx: Any) -> None:
        ctx.send_event(event)


class Loop(Agent):
    @action(InputEvent)
    @staticmethod
    def split(event: InputEvent, ctx: Any) -> None:
        for item in [Scored(score=1), Stored()]:
            ctx.send_event(item)

    @action("score > 0 || type == 'Stored'")
    @staticmethod
    def gather(event: Event, ctx: Any) -> None:
        if isinstance(event, Scored):
            ctx.send_event(OutputEvent(Free(a=1)))


class AnyEvent(Agent):
    @action(Event)
    @staticmethod
    def log(event: Event, ctx: Any) -> None:
        if event.type == EventType.InputEvent:
            ctx.send_event(Scored(score=1))


class ByPredicate(Agent):
    @action(lambda event: event.get_attr("input") == 1)
    @staticmethod
    def one(event: Event, ctx: Any) -> None:
        ctx.send_event(Free(level=2))

    @action("type == 'free' && level > 1")
    @staticmethod
    def two(event: Event, ctx: Any) -> None:
        kept = {"free": Free, "stored": Stored}
        ctx.send_event(kept["stored"]())

    @action(Stored)
    @staticmethod
    def three(event: Event, ctx: Any) -> None: ...


def traced(function: Any) -> Any:
    @functools.wraps(function)
    def call(event: Any, ctx: Any) -> Any:
        return function(event, ctx)

    return call


class Wrapped(Agent):
    @action(InputEvent)
    @traced
    def first(event: Event, ctx: Any) -> None:  # pyright: ignore[reportGeneralTypeIssues]
        ctx.send_event(Scored(score=1))

    @action(Scored)
    @traced
    def second(event: Event, ctx: Any) -> None: ...  # pyright: ignore[reportGeneralTypeIssues]


class Called:
    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind

    def __call__(self, event: Event, ctx: Any) -> None:
        ctx.send_event(self.kind())  # pyright: ignore[reportCallIssue]


def with_kind(kind: type[Event], event: Event, ctx: Any) -> None:
    ctx.send_event(kind())  # pyright: ignore[reportCallIssue]


def closures() -> Agent:
    class Inner(Event):
        n: int = 0

    def first(event: Event, ctx: Any) -> None:
        ctx.send_event(Inner(n=1))

    def second(event: Inner, ctx: Any) -> None:
        ctx.send_event(OutputEvent(event.n))

    return agent_of(([InputEvent], first), ([Inner, "type == 'Inner' && n > 1"], second))


RIGHT = [
    Triage,
    ByMethods,
    Dynamic,
    Loop,
    AnyEvent,
    ByPredicate,
    Wrapped,
    closures,
    lambda: agent_of(([InputEvent], Called(Stored)), ([Stored], start)),
    lambda: agent_of(([InputEvent], functools.partial(with_kind, Stored)), ([Stored], start)),
    lambda: agent_of(([InputEvent], lambda event, ctx: ctx.send_event(Scored(score=1))), ([Scored], start)),
    lambda: agent_of(([InputEvent, "input > 5"], start)),
    lambda: agent_of((["has(attributes.input)"], start)),
]


@pytest.mark.parametrize("make", RIGHT)
def test_correct_agents_get_no_warnings(make: Any) -> None:
    assert warnings_of(make()) == []


# mistakes


def test_no_actions() -> None:
    assert "agent 'Empty' has no actions" in refused(Agent("Empty"))


def test_no_action_for_the_input() -> None:
    text = refused(agent_of(([OutputEvent], start)))
    assert "agent 'Triage' does nothing" in text
    assert "'step0' waits for _output_event" in text


def test_an_event_type_without_quotes() -> None:
    def judge(event: InputEvent, ctx: Any) -> None:
        ctx.send_event(Scored(score=1))

    text = refused(agent_of(([InputEvent], judge), (["type == Scored && score > 1"], start)))
    assert "uses Scored without quotes" in text
    assert "type == 'Scored'" in text


def test_a_misspelt_input_is_named_first() -> None:
    assert "did you mean '_input_event'?" in refused(agent_of((["_inptu_event"], start)))


def test_a_type_that_is_almost_right() -> None:
    def first(event: Event, ctx: Any) -> None:
        ctx.send_event(Scored(score=1))

    text = refused(agent_of(([InputEvent], first), (["scorred"], start)))
    assert "agent 'Triage', action 'step1'" in text
    assert "did you mean 'Scored'?" in text
    assert "did you mean 'Scored'?" in refused(
        agent_of(([InputEvent], first), ([Scored, "type == 'Scord' && score > 1"], start))
    )
    assert "did you mean '_input_event'?" in refused(agent_of(([InputEvent, "InputEvents"], start)))


def test_an_attribute_alone_is_not_an_expression() -> None:
    assert '@action("attributes.flag == true")' in refused(agent_of(([InputEvent, "attributes.flag"], start)))


def test_a_type_that_nothing_sends() -> None:
    assert warnings_of(agent_of(([InputEvent], start), ([Stored, "elsewhere"], start))) == [
        "action 'step1' waits for 'Stored', but nothing in this agent sends it",
        "action 'step1' waits for 'elsewhere', but nothing in this agent sends it",
    ]


def test_an_event_that_nothing_handles(caplog: pytest.LogCaptureFixture) -> None:
    def first(event: Event, ctx: Any) -> None:
        ctx.send_event(Stored())
        ctx.send_event(Event(type="lost" if event.id else URGENT))

    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        found = warnings_of(agent_of(([InputEvent], first), ([URGENT], start)))
    assert found == [
        "action 'step0' sends 'Stored', which no action handles",
        "action 'step0' sends 'lost', which no action handles",
    ]
    assert [record.getMessage() for record in caplog.records] == [f"agent 'Triage': {item}" for item in found]


def test_two_classes_of_one_type() -> None:
    class Other(Event):
        EVENT_TYPE: ClassVar[str] = "Scored"
        n: int = 0

    def first(event: Event, ctx: Any) -> None:
        ctx.send_event(Scored(score=1))

    text = refused(agent_of(([InputEvent], first), ([Other], start)))
    assert "two event classes of the type 'Scored'" in text
    assert "test_checks.Scored and" in text


def test_an_attribute_that_the_class_does_not_have() -> None:
    def first(event: Event, ctx: Any) -> None:
        ctx.send_event(Scored(score=1))

    text = refused(agent_of(([InputEvent], first), (["type == 'Scored' && scoer > 1"], start)))
    assert "uses the attribute 'scoer', which 'Scored' does not have" in text
    assert "did you mean 'score'?" in text
    text = refused(agent_of((["type == EventType.InputEvent && attributes.amount > 1"], start)))
    assert "declared are input" in text


def test_an_attribute_that_no_event_has() -> None:
    def first(event: Any, ctx: Any) -> None:
        ctx.send_event(Scored(score=1))

    assert warnings_of(agent_of(([InputEvent], first), (["scoer > 1"], start))) == [
        "action 'step1': no event of this agent has the attribute 'scoer' of 'scoer > 1'"
    ]


def test_an_annotation_that_the_trigger_cannot_fill() -> None:
    def act(event: Scored, ctx: Any) -> None: ...

    text = refused(agent_of(([InputEvent], act)))
    assert "takes a Scored, but is triggered by InputEvent" in text
    assert "InputEvent has no attribute 'score'" in text


def test_expressions_are_parsed() -> None:
    text = refused(agent_of(([InputEvent, "input >"], start)))
    assert "agent 'Triage', action 'step0': 'input >' is not a valid expression" in text


def test_code_that_cannot_be_analyzed_may_send_anything() -> None:
    names: dict[str, Any] = {"Event": Event}
    exec("def first(event, ctx):\n    ctx.send_event(Event(type='a' + event.id))", names)
    assert warnings_of(agent_of(([InputEvent], names["first"]), (["elsewhere"], start))) == []
    assert warnings_of(agent_of(([InputEvent], print), (["elsewhere"], start))) == []
