"""Agents in the plans of other agents."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import Agent, AgentPlan, Budget, InputEvent, ResourceDescriptor, ResourceType
from emberflow.errors import InvalidAgent
from emberflow.plan.agents.sub_agents import DEEPEST

AGENT = ResourceType.AGENT


def act(event: InputEvent, ctx: Any) -> None:
    pass


def agent(name: str, **inner: Any) -> Agent:
    made = Agent(name).add_action("act", [InputEvent], act)
    for inner_name, one in inner.items():
        made.add_resource(inner_name, AGENT, one)
    return made


class Described(Agent):
    """Knows things.

    About everything.
    """

    input_type = int

    def __init__(self, greeting: str = "") -> None:
        super().__init__()
        self.add_action("act", [InputEvent], act, greeting=greeting)


def plan_of(plan: AgentPlan, name: str) -> AgentPlan:
    return plan.resource_providers[AGENT][name].instance


def test_a_plan_contains_the_plans_of_its_agents() -> None:
    plan = AgentPlan.from_agent(
        agent("a", b=agent("x", c=ResourceDescriptor(clazz=Described, greeting="hi")))
    )
    inner = plan_of(plan_of(plan, "b"), "c")

    assert plan_of(plan, "b").name == "b"
    assert (inner.name, inner.description, inner.input_type) == (
        "c",
        "Knows things.\n\nAbout everything.",
        int,
    )
    assert inner.actions["act"].config == {"greeting": "hi"}
    read = AgentPlan.from_json(plan.to_json())
    assert read.to_json() == plan.to_json()
    assert plan_of(plan_of(read, "b"), "c").input_type is int
    assert "agent b = an agent with 1 actions" in plan.explain() or "agent b" in plan.explain()


def test_agents_share_the_resources_of_the_environment_but_do_not_call_themselves() -> None:
    shared = agent("shared")
    plan = AgentPlan.from_agent(agent("a"), None, {AGENT: {"shared": shared}})

    assert plan_of(plan, "shared").resource_providers[AGENT] == {}


def cycle() -> Agent:
    first, second = agent("first"), agent("second")
    first.add_resource("second", AGENT, second)
    second.add_resource("first", AGENT, first)
    return first


def tower(height: int) -> Agent:
    made = agent("bottom")
    for _ in range(height):
        made = agent("floor", below=made)
    return made


def with_budget() -> Agent:
    return agent("a", b=agent("b").add_budget(Budget(tokens=1, per="run")))


BAD = {
    "a cycle": (cycle, "in a cycle: first -> second -> first"),
    "deep nesting": (lambda: tower(DEEPEST + 1), "nested more than 8 deep"),
    "a budget": (with_budget, "'b' has a budget of its own"),
    "a class": (lambda: agent("a", b=Described), r"did you mean Described\(\)"),
    "no agent": (lambda: agent("a", b="text"), "the agent 'b' is 'text'"),
    "wrong arguments": (
        lambda: agent("a", b=ResourceDescriptor(clazz=Described, greting=1)),
        "the agent 'b' could not be created",
    ),
    "a tool of the same name": (
        lambda: agent("a", b=agent("b")).add_resource("b", ResourceType.TOOL, act),
        "a tool and an agent named 'b'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_work_is_refused(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(InvalidAgent, match=message):
        AgentPlan.from_agent(make())


def test_nesting_has_a_limit() -> None:
    AgentPlan.from_agent(tower(DEEPEST - 1))
