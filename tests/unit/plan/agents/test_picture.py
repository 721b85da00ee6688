"""Plans of agents as text and as Mermaid diagrams."""

from __future__ import annotations

import json

import pytest

from emberflow.agents import Agent, AgentExecutionOptions, AgentPlan, Configuration, Event, InputEvent
from emberflow.errors import InvalidArgument
from tests.golden.golden_agent import golden_agent

TEXT = """\
agent 'golden': 3 actions, 2 resources
action score
  ├─ on     InputEvent
  └─ sends  Scored
async action escalate
  ├─ on     type == 'Scored' && score > 5 | Urgent | tests.golden.golden_agent.is_large()
  └─ sends  OutputEvent, Urgent
action tell
  ├─ on     Scored
  ├─ sends  OutputEvent
  └─ config retries=3
resources
  chat_model model = Model
  tool add = function
config
  max-steps = 50"""

MERMAID = """\
flowchart LR
  input(["input"])
  output(["output"])
  a0["score"]
  a1["escalate<br/>async"]
  a2["tell"]
  e0{{"Scored"}}
  e1{{"Urgent"}}
  a0 --> e0
  a1 --> output
  a1 --> e1
  a2 --> output
  input --> a0
  input -.->|"tests.golden.golden_agent.is_large()"| a1
  e0 -.->|"type == 'Scored' && score #gt; 5"| a1
  e0 --> a2
  e1 --> a1"""


def plan() -> AgentPlan:
    agent = golden_agent()
    agent.actions["tell"][2].pop("labels")
    return AgentPlan.from_agent(agent, Configuration().set(AgentExecutionOptions.MAX_STEPS, 50))


def test_as_text() -> None:
    assert plan().explain() == TEXT


def test_as_mermaid() -> None:
    assert plan().explain("mermaid") == MERMAID


def test_as_json() -> None:
    assert json.loads(plan().explain("json"))["name"] == "golden"


def test_a_plan_from_json_looks_the_same() -> None:
    read = AgentPlan.from_json(plan().to_json())
    assert read.explain() == TEXT
    assert read.explain("mermaid") == MERMAID


def test_warnings_and_unknown_sends_are_shown() -> None:
    agent = Agent("a").add_action(
        "x", [InputEvent], lambda event, ctx: ctx.send_event(Event(type=event.input))
    )
    agent.add_action('quo"ted', ['input == "<b>"'], lambda event, ctx: None)
    made = AgentPlan.from_agent(agent)
    assert "└─ sends  …" in made.explain()
    assert 'a1["quo#quot;ted"]' in made.explain("mermaid")
    assert "#lt;b#gt;" in made.explain("mermaid")
    lonely = Agent("b").add_action("x", [InputEvent, "other"], lambda event, ctx: None)
    assert "warnings\n  action 'x' waits for 'other'" in AgentPlan.from_agent(lonely).explain()


def test_an_unknown_form() -> None:
    with pytest.raises(InvalidArgument, match="cannot be shown as 'svg'"):
        plan().explain("svg")
