"""An agent whose calls end in any order, and a simulation of an engine that saves, crashes and repeats."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from emberflow.agents import Agent, Event, InputEvent, OutputEvent
from emberflow.events.batch import MAX_WATERMARK
from emberflow.testing import Emitted
from tests.support.agent_harness import AgentHarness, Call, Turn
from tests.support.memory_log import MemoryLog

Input = tuple[str, int]


def start(event: Event, ctx: Any) -> None:
    _, number = event.get_attr("input")
    ctx.short_term_memory.append("seen", number)
    ctx.sensory_memory.set("number", number)
    if number % 2:
        ctx.send_event(Event("slow", {"turns": number % 3, "fails": number % 7 == 5}))
    if number % 3 == 0:
        ctx.send_event(Event("slow", {"turns": 1, "fails": False}))
    if number % 11 == 10:
        raise ValueError("a plain action fails")
    ctx.send_event(Event("quick", {"turns": 0}))


async def slow(event: Event, ctx: Any) -> None:
    memory = ctx.short_term_memory
    memory.set("calls.total", memory.get("calls.total", 0) + 1)
    memory.delete("calls.last")
    ctx.sensory_memory.set("turns", event.get_attr("turns"))
    ctx.send_event(reported("slow begins", event, ctx))
    for turn in range(event.get_attr("turns")):
        await Turn()
        memory.append("turns", turn)
    if event.get_attr("fails"):
        raise ValueError("a call fails")
    memory.set("calls.last", event.id)
    ctx.send_event(Event("quick", {"turns": event.get_attr("turns")}))


def quick(event: Event, ctx: Any) -> None:
    ctx.send_event(reported("quick", event, ctx))
    if event.get_attr("turns") == 2:
        ctx.send_event(Event("slow", {"turns": 1, "fails": False}))


async def late(event: Event, ctx: Any) -> None:
    if event.get_attr("turns") == 1:
        await Turn()
        ctx.send_event(reported("late", event, ctx))


def reported(what: str, event: Event, ctx: Any) -> OutputEvent:
    memory = ctx.short_term_memory
    return OutputEvent(
        (
            ctx.key,
            what,
            event.id.partition("-")[2],
            str(event.upstream_event_id).partition("-")[2],
            event.upstream_action_name,
            memory.get("seen"),
            memory.get("calls.total"),
            memory.get("calls.last"),
            memory.get("turns"),
            ctx.sensory_memory.get("number"),
            ctx.sensory_memory.get("turns"),
        )
    )


ACTIONS: dict[str, tuple[str, Any]] = {
    "start": (InputEvent.EVENT_TYPE, start),
    "slow": ("slow", slow),
    "quick": ("quick", quick),
    "late": ("quick", late),
}


def agent() -> Agent:
    made = Agent("mixed")
    for name, (trigger, function) in ACTIONS.items():
        made.add_action(name, [trigger], function)
    return made


class Simulation:
    """The operator with its input, able to return to what it last saved."""

    def __init__(self, inputs: list[Input], marks: list[int]) -> None:
        self.inputs = inputs
        self.marks = marks
        """Before each input; input i has the timestamp i."""
        self.position = 0
        self.ended = False
        self.log: list[Any] = []
        self._saved: tuple[bytes | None, int, bool, list[Any]] = (None, 0, False, [])
        self.call_log = MemoryLog()
        self.background: list[Call] = []
        """Calls of detached runs."""
        self._start(None)

    def _start(self, data: bytes | None) -> None:
        self.harness = AgentHarness(agent(), skip=True, restore=data)
        self.harness.head.runtime.log = self.call_log

    @property
    def whole_log(self) -> list[Any]:
        return [*self.log, *self.harness.log]

    def send(self, size: int) -> None:
        behind = min(self.position + size, len(self.inputs))
        part = range(self.position, behind)
        self.harness.send(
            [self.inputs[i] for i in part],
            list(part),
            [self.marks[i] for i in part],
            watermark=self.marks[behind],
        )
        self.position = behind

    def end(self) -> None:
        self.ended = True
        self.harness.end()

    def save(self) -> None:
        self._saved = (self.harness.save(), self.position, self.ended, self.whole_log)

    def crash(self) -> None:
        for call in self.harness.calls.open:
            call.drop()
        self.harness.close()
        for call in self.background:
            call.drop()
        self.background = []
        self.call_log.claims.clear()
        self._go_back()

    def _go_back(self) -> None:
        data, self.position, self.ended, self.log = self._saved
        self._start(data)

    def park(self) -> None:
        """A micro-batch is committed while calls are in flight; the next one continues from what was stored."""
        data = self.harness.park()
        self._saved = (data, self.position, self.ended, self.whole_log)
        self.background += self.harness.calls.open
        self._go_back()

    def repeat(self) -> None:
        """A micro-batch is abandoned and started again, while its calls continue."""
        self.harness.head.abandon()
        self.background += self.harness.calls.open
        self._go_back()

    def step_background(self, number: int) -> None:
        if self.background[number].step():
            del self.background[number]


def check_time(simulation: Simulation, outputs: list[list[Any]]) -> None:
    """A watermark is emitted after everything that the inputs before it emitted, and never regresses."""
    marks, current, emitted = simulation.marks, -1, 0
    by_input = {id_of(value): i for i, values in enumerate(outputs) for value in values}
    expected = [len(values) for values in outputs]
    seen = [0] * len(expected)
    for item in simulation.whole_log:
        if isinstance(item, Emitted):
            number = by_input[id_of(item.value)]
            assert item.timestamp == number
            seen[number] += 1
            emitted += 1
        mark = item.watermark if isinstance(item, Emitted) else item
        if mark is None:
            continue
        assert mark >= current, "the watermark regressed"
        if mark > current:
            # Which inputs came before the channel reached it?
            before = next((i for i in range(len(marks)) if marks[i] >= mark), len(expected))
            assert seen[:before] == expected[:before], "a watermark overtook an input"
            current = mark
    assert current == MAX_WATERMARK


def drive(simulation: Simulation, data: st.DataObject, *, batch: int, saves: int) -> None:
    """Moves of any kind in any order, until everything is done."""
    crashes = saved = 0
    while not simulation.ended or simulation.harness.unfinished:
        harness = simulation.harness
        # Progress first: the simplest example is an undisturbed run.
        moves: list[str] = []
        if simulation.position < len(simulation.inputs):
            moves += ["send", "send", "send"]
        elif not simulation.ended:
            moves += ["end", "end"]
        if harness.calls.open:
            moves += ["step"] * 4
        if harness.waits_to_resume:
            moves += ["resume"] * 2
        if simulation.background:
            moves += ["background"] * 3
        moves += ["save", "park"] if saved < saves else []
        moves += ["crash", "repeat"] if crashes < 4 else []
        match data.draw(st.sampled_from(moves)):
            case "send":
                simulation.send(data.draw(st.integers(1, batch)))
            case "end":
                simulation.end()
            case "step":
                harness.calls.step(data.draw(st.integers(0, len(harness.calls.open) - 1)))
            case "resume":
                harness.resume()
            case "background":
                simulation.step_background(data.draw(st.integers(0, len(simulation.background) - 1)))
            case "save":
                saved += 1
                simulation.save()
            case "park":
                saved += 1
                simulation.park()
            case "repeat":
                crashes += 1
                simulation.repeat()
            case _:
                crashes += 1
                simulation.crash()


def id_of(value: Any) -> Any:
    return value[0], value[1], value[2]
