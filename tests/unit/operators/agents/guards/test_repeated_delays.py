"""Delayed events and inputs of a key may change places when they are repeated after a crash: their calls are found again."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import Agent, Event, InputEvent, OutputEvent, RunnerContext
from emberflow.testing import ManualClock
from tests.support.agent_harness import AgentHarness
from tests.support.memory_log import MemoryLog

made: list[str] = []


async def pay(what: str) -> str:
    made.append(what)
    return what


async def act(event: InputEvent, ctx: RunnerContext) -> None:
    number = event.input[1]
    ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, f"input {number}")))
    if number == 0:
        for name in ("first", "second"):
            ctx.send_event_after(10, Event("later", {"name": name}))


async def later(event: Event, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, event.get_attr("name"))))


def play(log: MemoryLog, moves: str, restore: bytes | None = None) -> tuple[list[Any], AgentHarness]:
    """A digit is an input, `t` lets the delayed events become due."""
    agent = Agent("a").add_action("act", [InputEvent], act).add_action("later", ["later"], later)
    harness = AgentHarness(agent, clock=ManualClock(0), restore=restore)
    harness.head.runtime.log = log
    for move in moves:
        if move == "t":
            harness.advance_clock(10)
        else:
            harness.send([("k", int(move))])
        harness.calls.finish_all()
    return harness.values, harness


@pytest.mark.parametrize(("before", "after"), [("0t1", "01t"), ("01t", "0t1"), ("01t2", "0t12")])
def test_calls_are_found_whatever_comes_first(before: str, after: str) -> None:
    made.clear()
    log = MemoryLog()
    first, harness = play(log, before)
    harness.close()
    paid = sorted(made)
    again, harness = play(log, after)
    harness.close()
    assert sorted(again) == sorted(first) == paid
    assert sorted(made) == paid, "nothing is paid for again"


def test_a_delayed_event_in_flight_is_stored_with_its_identity() -> None:
    made.clear()
    log = MemoryLog()
    _, harness = play(log, "0")
    harness.advance_clock(10)
    data = harness.save()
    harness.calls.finish_all()
    harness.close()
    paid = sorted(made)
    log.claims.clear()
    _, harness = play(log, "", restore=data)
    harness.resume()
    harness.calls.finish_all()
    assert harness.values == ["first", "second"]
    assert sorted(made) == paid == ["first", "input 0", "second"]
    harness.close()
