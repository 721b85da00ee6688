"""What an agent stores about a key with a run in flight, in its first form: sequence number, memory with pages, the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emberflow.agents import Agent, AgentPlan, InputEvent, OutputEvent, RunnerContext
from emberflow.event_time.clock import FixedClock
from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import identity_of
from emberflow.operators.agents.agent_operator import AgentOperator
from emberflow.operators.contexts import RuntimeContext
from emberflow.operators.operator import Step
from emberflow.operators.scope import SavedScope, Scope
from emberflow.plan.specs import AgentSpec
from emberflow.state.entry import Entry

FILE = Path(__file__).parent / "v1" / "agent_entry.bin"
UPDATE = False


class Calls:
    """Calls that end when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def start(self, limiter: str, capacity: int, call: Any, done: Any) -> None:
        self.started.append((call, done))

    async def in_thread(self, function: Callable[[], Any], threads: int) -> Any:
        return function()

    def finish(self) -> None:
        while self.started:
            call, done = self.started.pop(0)
            done(asyncio.run(call()), None)


class Pages:
    def __init__(self, pages: dict[int, bytes]) -> None:
        self.pages = pages

    def get_page(self, number: int) -> bytes | None:
        return self.pages.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        number = len(self.pages) + 1 if number is None else number
        self.pages[number] = data
        return number

    def remove_page(self, number: int) -> None:
        del self.pages[number]


async def answer(event: InputEvent, ctx: RunnerContext) -> None:
    count = ctx.short_term_memory.get("stats.count", 0) + 1
    ctx.short_term_memory.set("stats.count", count)
    ctx.short_term_memory.append("history", event.input)
    ctx.short_term_memory.set("text", str(event.input) * 3_000)
    await asyncio.sleep(0)
    history = ctx.short_term_memory.get("history")
    ctx.send_event(OutputEvent((event.id, count, history, len(ctx.short_term_memory.get("text")))))


def opened(scope: Scope) -> tuple[AgentOperator, Calls, list[Any]]:
    agent = Agent("keeper").add_action("answer", [InputEvent], answer)
    operator = AgentOperator(
        Step("u", "keeper"), AgentSpec(plan=AgentPlan.from_agent(agent), plan_id="golden")
    )
    calls = Calls()
    operator.connect(calls)
    operator.open(RuntimeContext("keeper", operator))
    outputs: list[Any] = []

    class Sink:
        def on_batch(self, batch: Batch) -> None:
            outputs.extend(batch.values)

        def on_watermark(self, watermark: int) -> None:
            outputs.append(watermark)

    operator.output.main.append(Sink())
    operator.input_of = {0: 0}
    operator.enter(scope)
    return operator, calls, outputs


def new_scope(pages: Pages, **stored: Any) -> Scope:
    return Scope(channels=[(0, 0)], idle_ms={}, clock=FixedClock(7), pages=pages, **stored)


def in_flight() -> bytes:
    """One input done, one in flight, one behind it."""
    pages = Pages({})
    scope = new_scope(pages)
    operator, calls, _ = opened(scope)
    operator.receive(0, (0, 0), Batch([1], None, None, ["ann"]), None)
    calls.finish()
    operator.receive(0, (0, 0), Batch([2, 3], None, None, ["ann", "ann"]), None)
    operator.before_save()
    scope.entry("ann").write_pages(pages)
    data = encode((dict(scope.entry("ann")), scope.saved(), pages.pages))
    operator.close()
    return data


def test_a_run_in_flight_goes_on() -> None:
    if UPDATE and not FILE.exists():
        FILE.write_bytes(in_flight())
    entry, saved, stored = decode(FILE.read_bytes())
    assert isinstance(saved, SavedScope)
    scope = new_scope(Pages(stored), saved=saved, entries={"ann": Entry(entry)})
    operator, calls, outputs = opened(scope)
    operator.resume()
    calls.finish()
    operator.receive(0, (0, 0), Batch([]), MAX_WATERMARK)
    operator.close()
    # The stored event keeps the id that the first version gave it; the next input has one of 128 bits.
    assert outputs == [
        ("ann", ("e72072736e9e074c-2.0", 2, [1, 2], 3_000)),
        ("ann", (f"{identity_of('ann', 'u')}-3.0", 3, [1, 2, 3], 3_000)),
        MAX_WATERMARK,
    ]
    assert set(scope.entry("ann")) == {"seq", "memory", "memory_size"}


def test_the_form_is_the_stored_one() -> None:
    """What is written now reads the same; a change of the form needs a new version and a reader for this one."""
    stored, now = decode(FILE.read_bytes()), decode(in_flight())
    assert stored[0].keys() == now[0].keys()
    assert stored[0]["run"][0] == now[0]["run"][0]
    assert dict(stored[0]["memory"]) == dict(now[0]["memory"])
