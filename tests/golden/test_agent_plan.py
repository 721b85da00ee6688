"""An agent plan of format 1 still loads and has the same triggers; see test_golden.py for the rules."""

from __future__ import annotations

from pathlib import Path

from emberflow.agents import AgentExecutionOptions, AgentPlan, Configuration, Event, InputEvent
from emberflow.operators.agents.routes import Routes
from tests.golden.golden_agent import Scored, golden_agent

FILE = Path(__file__).parent / "v1" / "agent_plan_v1.json"
UPDATE = False

EVENTS = [
    InputEvent(1),
    Scored(score=3),
    Scored(score=6),
    Event(type="Scored", attributes={"score": 100}),
    Event(type="Urgent"),
    Event(type="Other", attributes={"score": 100}),
]


def plan_now() -> AgentPlan:
    settings = Configuration().set(AgentExecutionOptions.MAX_STEPS, 50)
    settings.set_str("note", "kept")
    return AgentPlan.from_agent(golden_agent(), settings)


def stored() -> AgentPlan:
    if UPDATE and not FILE.exists():
        FILE.write_text(plan_now().to_json(indent=1) + "\n", encoding="utf-8")
    return AgentPlan.from_json(FILE.read_text(encoding="utf-8"))


def test_a_stored_plan_equals_the_current_plan() -> None:
    assert stored() == plan_now()


def test_a_stored_plan_has_the_same_triggers() -> None:
    then, now = Routes(stored()), Routes(plan_now())
    triggered = [[item.name for item in then.triggered_by(event)] for event in EVENTS]
    assert triggered == [
        ["score"],
        ["tell"],
        ["escalate", "tell"],
        ["escalate", "tell"],
        ["escalate"],
        ["escalate"],
    ]
    assert triggered == [[item.name for item in now.triggered_by(event)] for event in EVENTS]
