"""What an agent stores about inputs that are queued behind a run and come from the output of another agent: which event of
that agent each comes from. See test_golden.py for the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.agents import Agent, InputEvent, OutputEvent
from emberflow.events.batch import Batch
from emberflow.events.codecs import decode
from tests.support.agent_harness import AgentHarness, Turn

FILE = Path(__file__).parent / "v2" / "agent_origins.bin"
UPDATE = False
ORIGINS = [("reader", "key-1.1"), None, ("reader", "key-2.1")]


async def work(event: InputEvent, ctx: Any) -> None:
    await Turn()
    ctx.send_event(OutputEvent(event.input))


def harness(restore: bytes | None = None) -> AgentHarness:
    return AgentHarness(Agent("keeper").add_action("work", [InputEvent], work), restore=restore)


def stored_now() -> bytes:
    """One input in flight, two queued behind it."""
    made = harness()
    values = [("k", number) for number in range(3)]
    made.head.receive(0, (0, 0), Batch(values, None, None, ["k"] * 3, ORIGINS), None)
    data = made.save()
    made.calls.open[0].drop()
    made.close()
    return data


def test_stored_origins_are_kept() -> None:
    if UPDATE and not FILE.exists():
        FILE.write_bytes(stored_now())
    again = harness(FILE.read_bytes())
    again.resume()
    assert again.scope is not None
    [run] = again.scope.work.runs.values()
    assert [origin for *_, origin in run.waiting] == ORIGINS[1:]
    again.calls.finish_all()
    assert again.values == [("k", 0), ("k", 1), ("k", 2)]
    again.close()


def test_the_format_has_not_changed() -> None:
    (_, stored), (_, now) = decode(FILE.read_bytes()), decode(stored_now())
    assert stored["k"]["run"][0] == now["k"]["run"][0] == 2
    assert stored["k"]["run"][-1] == now["k"]["run"][-1] == {"origins": ORIGINS[1:]}
