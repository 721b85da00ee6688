"""Memory events: which are sent, what is in them, and that nobody pays for events that nobody sees."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentPlan,
    AgentRunBeginEvent,
    ErrorHandling,
    Event,
    EventType,
    InputEvent,
    MemoryEvent,
    MemoryEventOptions,
    OutputEvent,
    ReActAgent,
    RunnerContext,
    ShortTermReadEvent,
    ShortTermWriteEvent,
    action,
)
from emberflow.events.memory_events import MEMORY_EVENTS
from emberflow.operators.agents.agent_runtime import AgentRuntime
from emberflow.testing import ManualClock, Reply, run_agent, tool_call
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.chat_agents import with_model
from tests.support.memory_log import MemoryLog

EVERYTHING = {MemoryEventOptions.MEMORY_GENERATE_EVENT: True}


class Writes(Agent):
    @action(InputEvent)
    @staticmethod
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        seen = memory.get("seen", 0)
        memory.set("seen", seen + 1)
        memory.set("seen", seen + 2)
        memory.set("user.name", "Ann")
        ctx.sensory_memory.set("draft", {"n": event.input})
        ctx.sensory_memory.get("draft")["n"] = "changed by the action"
        ctx.send_event(OutputEvent(seen))


def shown(events: list[Event], *kinds: Any) -> list[tuple[str, Any]]:
    types = {kind.EVENT_TYPE for kind in kinds} or {event.type for event in events if "memory" in event.type}
    return [(event.type, event.attributes["value"]) for event in events if event.type in types]


def memory_events(run: Any) -> list[tuple[str, Any]]:
    return [(event.type, event.value) for event in run.events if isinstance(event, MemoryEvent)]


def test_writes_of_an_action_are_one_event_per_memory() -> None:
    run = run_agent(Writes(), [5])
    assert memory_events(run) == [
        (EventType.SensoryWriteEvent, {"draft": {"n": 5}}),
        (EventType.ShortTermWriteEvent, {"seen": 2, "user.name": "Ann"}),
    ]


def test_reads_are_events_if_switched_on_and_show_what_was_read() -> None:
    run = run_agent(Writes(), [5, 6], options=EVERYTHING)
    assert memory_events(run)[:3] == [
        (EventType.SensoryReadEvent, {"draft": {"n": 5}}),
        (EventType.SensoryWriteEvent, {"draft": {"n": 5}}),
        (EventType.ShortTermWriteEvent, {"seen": 2, "user.name": "Ann"}),
    ]
    assert (EventType.ShortTermReadEvent, {"seen": 2}) in memory_events(run)


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        ({MemoryEventOptions.MEMORY_GENERATE_EVENT: False}, []),
        (
            {
                MemoryEventOptions.MEMORY_GENERATE_EVENT: False,
                MemoryEventOptions.SHORT_TERM_WRITE: True,
            },
            [EventType.ShortTermWriteEvent],
        ),
        ({MemoryEventOptions.SHORT_TERM_WRITE: False}, [EventType.SensoryWriteEvent]),
    ],
)
def test_an_option_of_a_kind_decides_before_the_one_for_all(config: dict[Any, Any], kinds: list[str]) -> None:
    assert [kind for kind, _ in memory_events(run_agent(Writes(), [5], options=config))] == kinds


class Audits(Writes):
    @action(EventType.ShortTermWriteEvent)
    @staticmethod
    def audit(event: ShortTermWriteEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("audited", event.value["seen"])
        ctx.send_event(OutputEvent((event.key, event.value, event.upstream_action_name)))


def test_an_action_is_triggered_by_memory_events_and_its_own_writes_make_none() -> None:
    run = run_agent(Audits(), [5])
    assert run.outputs == [0, ("test", {"seen": 2, "user.name": "Ann"}, "work")]
    assert [kind for kind, _ in memory_events(run)].count(EventType.ShortTermWriteEvent) == 1


def test_ids_are_the_same_in_every_run_and_other_events_keep_theirs() -> None:
    first, second = run_agent(Writes(), [5]), run_agent(Writes(), [5])
    ids = [event.id for event in first.events]
    assert ids == [event.id for event in second.events]
    assert len(set(ids)) == len(ids)
    without = run_agent(Writes(), [5], options={MemoryEventOptions.MEMORY_GENERATE_EVENT: False})
    assert [event.id for event in without.events] == [
        event.id for event in first.events if not isinstance(event, MemoryEvent)
    ]


def test_a_failed_action_has_no_memory_events() -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("n", event.input)
        if event.input < 0:
            raise ValueError("negative")

    config = {AgentExecutionOptions.ON_ERROR: ErrorHandling.SKIP}
    run = run_agent(Agent("failing").add_action("act", [InputEvent], act), [1, -1, 2], options=config)
    assert [value for _, value in memory_events(run)] == [{"n": 1}, {"n": 2}]


def test_a_value_without_a_form_in_json_is_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    def act(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("good", b"\xff\x00")
        ctx.short_term_memory.set("bad", float("nan"))
        ctx.short_term_memory.set("gone", 1)
        ctx.short_term_memory.delete("gone")
        ctx.short_term_memory.new_object("nested")

    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        run = run_agent(Agent("odd").add_action("act", [InputEvent], act), [1])
    assert [value for _, value in memory_events(run)] == [{"good": "/wA=", "gone": None, "nested": None}]
    assert "leaves out the memory at 'bad'" in caplog.text


class Begins(Agent):
    @action(EventType.AgentRunBeginEvent)
    @staticmethod
    def begin(event: AgentRunBeginEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(event.value))

    @action(InputEvent)
    @staticmethod
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.set("user.seen", event.input)
        ctx.short_term_memory.new_object("empty")
        ctx.send_event(OutputEvent("worked"))


def test_a_run_begins_with_the_values_in_memory() -> None:
    config = {AgentExecutionOptions.AGENT_RUN_BEGIN_EVENT: True}
    run = run_agent(Begins(), [{"key": "k", "value": n} for n in (1, 2)], options=config)
    assert run.outputs == [{}, "worked", {"user.seen": 1}, "worked"]
    first, begin = run.events[:2]
    assert (begin.upstream_event_id, begin.upstream_action_name) == (first.id, "agent_run_begin_action")


def test_a_snapshot_is_not_a_read_of_memory_with_a_time_to_live() -> None:
    config = {
        AgentExecutionOptions.AGENT_RUN_BEGIN_EVENT: True,
        AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS: 100,
    }
    clock = ManualClock()

    class Old(Begins):
        @action(InputEvent)
        @staticmethod
        def work(event: InputEvent, ctx: RunnerContext) -> None:
            if event.input == 1:
                ctx.short_term_memory.set("once", 1)
            clock.advance(60)

    inputs = [{"key": "k", "value": n} for n in (1, 2, 3)]
    assert run_agent(Old(), inputs, options=config, clock=clock).outputs == [{}, {"once": 1}, {}]


def test_nothing_is_created_that_nobody_sees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[Any] = []
    opened = AgentRuntime.open

    def open_(self: AgentRuntime) -> None:
        opened(self)
        found.append(self.observation)

    monkeypatch.setattr(AgentRuntime, "open", open_)
    from emberflow.agents import AgentsExecutionEnvironment

    def run(agent: Agent, **config: Any) -> Any:
        env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
        for key, value in config.items():
            env.get_config().set(key.replace("__", "."), value)
        env.from_list([{"key": "a", "value": 1}]).apply(agent).to_list()
        env.execute("seen")
        return found[-1]

    assert run(Writes()) is None
    assert run(Begins(), **{"memory__generate-event": False}) is None
    assert run(Audits()) is not None
    assert run(Writes(), baseLogDir=str(tmp_path / "a")) is not None
    levels = {
        f"event-log__type__{kind}__level": "OFF"
        for kind in (EventType.SensoryWriteEvent, EventType.ShortTermWriteEvent)
    }
    assert run(Writes(), baseLogDir=str(tmp_path / "b"), **levels) is None


def test_waiting_for_an_event_that_is_switched_off_is_a_warning() -> None:
    class Waits(Writes):
        @action(EventType.ShortTermReadEvent, EventType.LongTermGetEvent)
        @staticmethod
        def never(event: ShortTermReadEvent, ctx: RunnerContext) -> None: ...

    warnings = AgentPlan.from_agent(Waits()).warnings
    assert any("'memory.generate-event.short-term-read'" in text for text in warnings)
    assert any("long-term memory" in text for text in warnings)


def test_a_condition_that_cannot_be_evaluated_for_a_memory_event_does_not_fail_the_run() -> None:
    class Conditional(Writes):
        @action("input > 0")
        @staticmethod
        def some(event: Event, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent("positive"))

    config = {AgentConfigOptions.CONDITION_EVALUATION_FAILURE_STRATEGY: "FAIL"}
    assert run_agent(Conditional(), [5], options=config).outputs == [0, "positive"]


class Slow(Agent):
    """Reads and writes before and after it waits, with lists that are set and appended to."""

    @action(InputEvent)
    @staticmethod
    async def work(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        memory.set("list", [event.input[1]])
        memory.append("history", memory.get("seen", 0))
        await Turn()
        memory.append("list", memory.get("history"))
        memory.set("seen", event.input[1])
        ctx.sensory_memory.set("a.b", 1)
        memory.delete("nothing")

    @action(*(kind.EVENT_TYPE for kind in MEMORY_EVENTS.values()))
    @staticmethod
    async def audit(event: MemoryEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.type, event.value, event.id.partition("-")[2])))


def test_an_action_that_ended_elsewhere_or_was_started_again_has_the_same_memory_events() -> None:
    inputs = [("k", 1), ("k", 2)]
    first = AgentHarness(Slow(), options=EVERYTHING)
    first.send(inputs)
    first.calls.finish_all()
    assert [value[0] for value in first.values] == 2 * [
        EventType.ShortTermReadEvent,
        EventType.SensoryWriteEvent,
        EventType.ShortTermWriteEvent,
    ]
    assert first.values[2] == (
        EventType.ShortTermWriteEvent,
        {"list": [1, [0]], "history": [0], "seen": 1},
        "1.1.short_term_write_event",
    )
    assert first.values[5][1] == {"list": [2, [0, 1]], "history": [0, 1], "seen": 2}
    for ends in (True, False):
        log = MemoryLog()
        made = AgentHarness(Slow(), options=EVERYTHING)
        made.head.runtime.log = log
        made.send(inputs)
        made.calls.step()
        data = made.park()
        if ends:
            made.calls.finish_all()
            assert any(call_id.endswith("/end") for call_id in log.records)
        made.close()
        log.claims.clear()
        made = AgentHarness(Slow(), options=EVERYTHING, restore=data)
        made.head.runtime.log = log
        made.resume()
        made.calls.finish_all()
        assert made.values == first.values
        made.close()


def test_what_emberflow_keeps_of_chats_is_not_shown() -> None:
    seen: list[str] = []

    class Watched(ReActAgent):
        @action("type != ''")
        @staticmethod
        def watch(event: Event, ctx: RunnerContext) -> None:
            seen.append(event.type)

    replies = [Reply(tool_calls=[tool_call("add", a=1, b=2)]), "3"]
    agent = with_model(Watched(chat_model="model", name="watched"), replies)
    run = run_agent(agent, ["1 + 2?"], options=EVERYTHING)
    assert run.outputs == ["3"]
    assert "_tool_response_event" in seen
    assert not [
        kind
        for kind in [*seen, *(event.type for event in run.events)]
        if "memory" in kind or "sensory" in kind
    ]


def test_names_of_an_agents_own_are_shown_next_to_those_of_emberflow() -> None:
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        for name in ("_chats.1.length", "_chats_waiting.2", "_chat", "chats"):
            ctx.sensory_memory.set(name, 1)
        ctx.short_term_memory.set("_chats", 1)

    run = run_agent(Agent("own").add_action("work", [InputEvent], work), [0])
    assert sorted(memory_events(run), key=lambda item: item[0]) == [
        ("_sensory_write_event", {"_chat": 1, "chats": 1}),
        ("_short_term_write_event", {"_chats": 1}),
    ]
