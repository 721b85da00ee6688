"""What an agent stores about a key with guards in use: a run with its error, what it spent and the event that started it;
budgets of the key; delayed events. See test_golden.py for the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, AgentExecutionOptions, Budget, Event, InputEvent, OutputEvent
from emberflow.events.codecs import decode
from emberflow.testing import ManualClock
from tests.support.agent_harness import AgentHarness, Turn

FILE = Path(__file__).parent / "v1" / "agent_guards_with_failures.bin"
EARLIER = Path(__file__).parent / "v1" / "agent_guards.bin"
"""Without the names of actions that had failed before the action in flight."""
UPDATE = False


def work(event: Event, ctx: Any) -> None:
    ctx.spend(tokens=10)
    if event.get_attr("input")[1] == 1:
        ctx.send_event_after(500, Event("later", {"n": 1}))
        return
    raise ValueError("no")


async def sorry(event: Event, ctx: Any) -> None:
    await Turn()
    ctx.spend(tokens=1)
    told = (event.get_attr("input"), ctx.error.action, ctx.error.message, ctx.budget_left("tokens"))
    ctx.send_event(OutputEvent(told))


def later(event: Event, ctx: Any) -> None:
    ctx.send_event(OutputEvent(("later", event.get_attr("n"), ctx.run_id.partition("-")[2])))


def harness(restore: bytes | None = None) -> AgentHarness:
    agent = Agent("guarded").add_budget(Budget(tokens=100, per="key")).add_budget(Budget(tokens=15))
    agent.add_action("work", [InputEvent], work, fallback="sorry")
    agent.add_action("sorry", [], sorry).add_action("later", ["later"], later)
    options = {AgentExecutionOptions.ON_ERROR: "dead-letter"}
    return AgentHarness(agent, restore=restore, options=options, clock=ManualClock(1_000))


def stored_now() -> bytes:
    """A delayed event, and an input whose fallback is in flight."""
    made = harness()
    made.send([("k", 1), ("k", 2)])
    data = made.save()
    made.calls.open[0].drop()
    made.close()
    return data


@pytest.mark.parametrize("file", [FILE, EARLIER], ids=lambda file: file.stem)
def test_guards_in_flight_continue(file: Path) -> None:
    if UPDATE and not file.exists():
        file.write_bytes(stored_now())
    again = harness(file.read_bytes())
    again.resume()
    again.calls.finish_all()
    again.advance_clock(500)
    assert again.values == [(("k", 2), "work", "no", 4), ("later", 1, "3")]
    assert again.entries()["k"]["budgets"] == {"0": (0, {"tokens": 21})}
    again.close()


def test_the_format_has_not_changed() -> None:
    (_, stored), (_, now) = decode(FILE.read_bytes()), decode(stored_now())
    assert stored["k"].keys() == now["k"].keys()
    assert stored["k"]["run"][0] == now["k"]["run"][0] == 2
    assert stored["k"]["run"][-1] == now["k"]["run"][-1]
    assert stored["k"]["later"] == now["k"]["later"]
    assert stored["k"]["budgets"] == now["k"]["budgets"]
