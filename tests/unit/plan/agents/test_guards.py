"""Guards as they are declared: what is rejected, and that plans contain them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emberflow.agents import Agent, AgentPlan, Budget, Event, InputEvent, Retry, RunnerContext, action
from emberflow.errors import InvalidAgent


class Lost(Exception):
    pass


class Guarded(Agent):
    @action(
        InputEvent,
        retry=Retry(attempts=4, backoff_ms=50, on=(ConnectionError, Lost)),
        timeout_ms=30_000,
        fallback="say_sorry",
    )
    @staticmethod
    async def answer(event: InputEvent, ctx: RunnerContext) -> None: ...

    @action()
    @staticmethod
    def say_sorry(event: Event, ctx: RunnerContext) -> None: ...


def act(event: Event, ctx: RunnerContext) -> None: ...


def test_plans_carry_guards_and_budgets() -> None:
    agent = Guarded().add_budget(Budget(tokens=5, per="key", window_ms=60_000)).add_budget(Budget(cost=0.5))
    plan = AgentPlan.from_agent(agent)
    assert plan.actions["answer"].guards.retry == Retry(attempts=4, backoff_ms=50, on=(ConnectionError, Lost))
    again = AgentPlan.from_json(plan.to_json())
    assert again == plan
    assert again.actions["answer"].guards.timeout_ms == 30_000
    assert again.budgets == (Budget(tokens=5, per="key", window_ms=60_000), Budget(cost=0.5))


def test_a_plan_without_guards_is_written_as_before() -> None:
    body = json.loads(AgentPlan.from_agent(Agent("a").add_action("act", [InputEvent], act)).to_json())
    assert "budgets" not in body
    assert "guards" not in body["actions"][0]


def test_guards_of_an_added_action_are_not_its_config() -> None:
    agent = Agent("a").add_action("act", [InputEvent], act, retry=Retry(attempts=2), model="small")
    plan = AgentPlan.from_agent(agent)
    assert plan.actions["act"].config == {"model": "small"}
    assert plan.actions["act"].guards.retry == Retry(attempts=2)
    assert plan.is_async
    assert not plan.actions["act"].is_async


def test_explain_shows_guards() -> None:
    plan = AgentPlan.from_agent(Guarded().add_budget(Budget(tokens=5_000, per="key", window_ms=60_000)))
    text = plan.explain()
    assert (
        "guards retry: 4 attempts, 50 ms apart ×2 on ConnectionError, Lost; timeout: 30,000 ms; fallback: say_sorry"
        in text
    )
    assert "budgets\n  5,000 tokens per key in 60,000 ms" in text
    assert 'a0 -.->|"fallback"| a1' in plan.explain("mermaid")


class Reminder(Event):
    text: str


def plans(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event_after(1_000, Reminder(text="call back"))


def test_delayed_events_are_detected() -> None:
    agent = Agent("a").add_action("plans", [InputEvent], plans).add_action("remind", [Reminder], act)
    plan = AgentPlan.from_agent(agent)
    assert "sends  Reminder" in plan.explain()
    assert plan.is_async, "work may outlive its input"
    assert plan.warnings == ()
    with_warning = AgentPlan.from_agent(Agent("a").add_action("plans", [InputEvent], plans))
    assert with_warning.warnings == ("action 'plans' sends 'Reminder', which no action handles",)


def test_an_error_event_is_drawn() -> None:
    agent = Agent("a").add_action("act", [InputEvent], act).add_action("repair", ["_error_event"], act)
    picture = AgentPlan.from_agent(agent).explain("mermaid")
    assert '{{"ErrorEvent"}}' in picture


@pytest.mark.parametrize(
    ("guards", "text"),
    [
        ({"retry": 3}, "retry cannot be 3"),
        ({"retry": Retry(attempts=0)}, "attempts must be a whole number from 1 to 1,000, not 0"),
        ({"retry": Retry(attempts=2.5)}, "attempts must be"),  # pyright: ignore[reportArgumentType]
        ({"retry": Retry(backoff_ms=-1)}, "backoff_ms and max_backoff_ms must be"),
        ({"retry": Retry(max_backoff_ms=float("nan"))}, "backoff_ms and max_backoff_ms must be"),
        ({"retry": Retry(factor=0.5)}, "factor must be 1 or more, not 0.5"),
        ({"retry": Retry(jitter=1.5)}, "jitter must be between 0 and 1, not 1.5"),
        ({"retry": Retry(on=())}, "on must be a tuple of exception classes"),
        ({"retry": Retry(on=(int,))}, "on must be a tuple of exception classes"),  # pyright: ignore[reportArgumentType]
        ({"timeout_ms": 0}, "timeout_ms cannot be 0"),
        ({"timeout_ms": 1.5}, "timeout_ms cannot be 1.5"),
        ({"fallback": act}, "fallback cannot be <function act"),
        ({"fallback": "say_sory"}, "its fallback 'say_sory' is not an action of the agent"),
        ({"fallback": "act"}, "its fallbacks form a cycle"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_guards(guards: dict[str, Any], text: str) -> None:
    agent = Agent("a").add_action("act", [InputEvent], act, **guards).add_action("say_sorry", ["x"], act)
    with pytest.raises(InvalidAgent) as caught:
        AgentPlan.from_agent(agent)
    assert f"agent 'a', action 'act': {text}" in str(caught.value)
    assert caught.value.way_out


def test_a_cycle_of_fallbacks_is_named() -> None:
    agent = Agent("a").add_action("one", [InputEvent], act, fallback="two")
    agent.add_action("two", [], act, fallback="three").add_action("three", [], act, fallback="one")
    with pytest.raises(InvalidAgent, match="one -> two -> three -> one"):
        AgentPlan.from_agent(agent)


def test_an_unreachable_action_is_rejected() -> None:
    with pytest.raises(InvalidAgent, match="action 'idle' has no trigger condition"):
        AgentPlan.from_agent(Agent("a").add_action("act", [InputEvent], act).add_action("idle", [], act))


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ("many", "'many' is not a budget"),
        (Budget(), "a budget must limit steps, tokens or cost"),
        (Budget(tokens=1, per="user"), "per must be 'run' or 'key', not 'user'"),
        (
            Budget(tokens=1, window_ms=5),
            "a window limits what a key spends in a time span, so it needs per='key'",
        ),
        (
            Budget(tokens=1, per="key", window_ms=0),
            "window_ms must be whole milliseconds greater than 0, not 0",
        ),
        (Budget(tokens=-1), "tokens must be a whole number of 0 or more, not -1"),
        (Budget(steps=1.5), "steps must be a whole number of 0 or more, not 1.5"),  # pyright: ignore[reportArgumentType]
        (Budget(cost=float("inf")), "cost must be a number of 0 or more, not inf"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_budgets(budget: Any, text: str) -> None:
    with pytest.raises(InvalidAgent) as caught:
        AgentPlan.from_agent(Agent("a").add_action("act", [InputEvent], act).add_budget(budget))
    assert f"agent 'a': {text}" in str(caught.value)


def test_backoff_grows_to_its_limit() -> None:
    retry = Retry(attempts=9, backoff_ms=100, factor=3, max_backoff_ms=500, jitter=0.2)
    assert [retry.delay_ms(attempt, 0.5) for attempt in (2, 3, 4, 5, 999)] == [100, 300, 500, 500, 500]
    assert retry.delay_ms(2, 0) == pytest.approx(80)
    assert 119 < retry.delay_ms(2, 0.999) < 120
