"""Agents whose calls end when the test says so: order per key, concurrent keys, watermarks, checkpoints in between."""

from __future__ import annotations

import copy

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.errors import ActionFailed, ProgramChanged
from emberflow.events.batch import MAX_WATERMARK
from emberflow.operators.agents.agent_run import RUN
from emberflow.testing import Emitted
from tests.support.agent_harness import AgentHarness, Turn


async def ask(event: Event, ctx: RunnerContext) -> None:
    """Writes memory before, between and after its calls."""
    key, number = event.get_attr("input")
    memory = ctx.short_term_memory
    memory.set("asked", memory.get("asked", 0) + 1)
    ctx.sensory_memory.set("number", number)
    ctx.send_event(OutputEvent((key, number, "asked", memory.get("asked"))))
    await Turn()
    memory.append("answers", number)
    if number < 0:
        raise ValueError(f"{number} is negative")
    ctx.send_event(Event("answered"))


def answered(event: Event, ctx: RunnerContext) -> None:
    number = ctx.sensory_memory.get("number")
    ctx.send_event(OutputEvent((ctx.key, number, ctx.short_term_memory.get("answers"), event.id[-4:])))


def asking() -> Agent:
    return Agent("asking").add_action("ask", [InputEvent], ask).add_action("answered", ["answered"], answered)


def test_the_inputs_of_a_key_are_processed_one_by_one() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("a", 2), ("b", 3), ("a", 4)])
    assert len(harness.calls.open) == 2, "one call per key"
    harness.calls.finish(0)
    assert [value[:2] for value in harness.values] == [("a", 1), ("a", 1)]
    harness.calls.finish_all()
    assert [value[1] for value in harness.values if value[0] == "a"] == [1, 1, 2, 2, 4, 4]
    assert harness.values[-1][2] == [1, 2, 4]
    assert harness.head.in_flight == 0
    assert not harness.head.busy


def test_keys_do_not_wait_for_each_other() -> None:
    harness = AgentHarness(asking())
    harness.send([("slow", 1), *((f"key{number}", number) for number in range(50))])
    while len(harness.calls.open) > 1:
        harness.calls.finish(1)
    assert len(harness.values) == 100
    assert not any(value[0] == "slow" for value in harness.values)
    harness.calls.finish()
    assert harness.values[-1][0] == "slow"


def test_effects_of_an_action_are_applied_when_it_ends() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1)])
    harness.calls.step()
    assert harness.values == [], "nothing is emitted before the action has ended"
    harness.calls.step()
    assert harness.values == [("a", 1, "asked", 1), ("a", 1, [1], "-1.2")]


def test_a_failing_action_leaves_no_trace() -> None:
    harness = AgentHarness(asking(), skip=True)
    harness.send([("a", 1), ("a", -1), ("a", 2)])
    harness.calls.finish_all()
    assert harness.values == [
        ("a", 1, "asked", 1),
        ("a", 1, [1], "-1.2"),
        ("a", 2, "asked", 2),
        ("a", 2, [1, 2], "-3.2"),
    ]
    assert harness.head.runtime.metrics.get_counter("failed_runs").get_count() == 1


def test_a_failing_call_stops_the_job_by_default() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", -1)])
    harness.calls.step()
    with pytest.raises(ActionFailed, match="-1 is negative"):
        harness.calls.step()


def test_watermarks_wait_for_the_inputs_before_them() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1)], [10], watermark=10)
    harness.send([("b", 2)], [20], watermark=20)
    assert harness.log == []
    harness.calls.finish(1)
    assert harness.outlet().watermarks == [], "b came after watermark 10, but a did not"
    harness.calls.finish(0)
    assert harness.outlet().watermarks == [20]
    assert harness.log[-1] == 20


def test_a_watermark_advances_while_later_inputs_wait() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1)], [10], watermark=10)
    harness.send([("b", 2)], [20], watermark=20)
    harness.calls.finish(0)
    assert harness.outlet().watermarks == [10]
    harness.calls.finish(0)
    assert harness.outlet().watermarks == [10, 20]


def test_a_watermark_inside_a_batch_waits_as_well() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("b", 2), ("c", 3)], [1, 11, 12], [-5, 10, 10], watermark=15)
    harness.calls.finish(2)
    harness.calls.finish(1)
    assert {record.watermark for record in harness.outlet().records} == {-5}
    harness.calls.finish(0)
    assert harness.outlet().watermarks == [15]


def test_the_slowest_of_several_channels_holds_event_time() -> None:
    harness = AgentHarness(asking(), channels=2)
    harness.send([("a", 1)], [5], watermark=30, channel=0)
    harness.watermark(8, channel=1)
    assert harness.outlet().watermarks == []
    harness.calls.finish()
    assert harness.outlet().watermarks == [8]
    harness.watermark(40, channel=1)
    assert harness.outlet().watermarks == [8, 30]


def test_the_end_of_input_waits_for_calls() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("a", 2)], [1, 2])
    harness.end()
    assert harness.log == []
    assert harness.scope is not None
    assert not harness.scope.ended
    harness.calls.finish_all()
    assert harness.scope.ended
    assert harness.log[-1] == MAX_WATERMARK
    assert len(harness.values) == 4


def test_outputs_carry_the_time_of_their_input() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("a", 2)], [10, 20])
    harness.calls.finish_all()
    assert [(item.value[1], item.timestamp) for item in harness.outlet().records] == [
        (1, 10),
        (1, 10),
        (2, 20),
        (2, 20),
    ]


def test_an_agent_at_its_limit_requests_backpressure() -> None:
    harness = AgentHarness(asking(), options={AgentExecutionOptions.MAX_IN_FLIGHT: 3})
    harness.send([("a", 1), ("a", 2)])
    assert not harness.stage.full
    harness.send([("b", 3)])
    assert harness.stage.full, "inputs queued behind a call count too"
    harness.calls.finish(1)
    assert not harness.stage.full


# Saving while calls are in flight.


def test_a_run_in_flight_is_saved_as_it_was_before_its_action() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("a", 2)], [10, 20])
    harness.calls.step()
    harness.head.before_save()
    entry = copy.deepcopy(harness.entries()["a"])
    harness.head.after_save()
    version, sequence, stamp, steps, ordinal, sensory, tasks, waiting = entry[RUN]
    assert (version, sequence, stamp, steps, ordinal) == (1, 1, 10, 0, 0)
    assert not sensory
    assert tasks == [("ask", InputEvent(("a", 1)))]
    assert waiting == [(("a", 2), 20)]
    assert entry["memory"] == {}, "the action's writes do not count yet"
    assert harness.entries()["a"]["memory"] == {"asked": 1}
    assert RUN not in harness.entries()["a"]


def test_a_restored_run_starts_its_action_again() -> None:
    first = AgentHarness(asking())
    first.send([("a", 0)])
    first.calls.finish_all()
    first.send([("a", 1), ("a", 2), ("b", 3)], [10, 20, 30], watermark=25)
    first.calls.step(0)
    saved = first.save()
    first.calls.finish_all()

    second = AgentHarness(asking(), restore=saved)
    second.send([("a", 4)], [40], watermark=35)
    second.resume()
    assert second.log == []
    second.calls.finish_all()

    assert [item for item in second.values if item[0] == "a"] == [
        *(item for item in first.values if item[0] == "a" and item[1] > 0),
        ("a", 4, "asked", 4),
        ("a", 4, [0, 1, 2, 4], "-4.2"),
    ]
    assert second.outlet().watermarks[-1] == 35
    assert all(RUN not in entry for entry in second.entries().values())


def test_ids_do_not_depend_on_rejected_events() -> None:
    """An action may catch the error for an event that cannot be sent; a checkpoint after it must not shift the ids."""

    async def tries(event: Event, ctx: RunnerContext) -> None:
        try:
            ctx.send_event(OutputEvent(number for number in [1]))
        except Exception:
            ctx.send_event(Event("reported"))
        await Turn()

    def reported(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.id, event.upstream_event_id)))

    agent = (
        Agent("tries").add_action("tries", [InputEvent], tries).add_action("reported", ["reported"], reported)
    )
    first = AgentHarness(agent)
    first.send([("a", 1)])
    first.calls.step()
    saved = first.save()
    first.calls.finish()
    second = AgentHarness(agent, restore=saved)
    second.resume()
    second.calls.finish()
    assert first.values == second.values
    assert first.values[0][0].endswith("-1.1")


def test_a_restored_run_knows_the_size_of_its_sensory_memory() -> None:
    def fill(event: Event, ctx: RunnerContext) -> None:
        ctx.sensory_memory.set("text", "x" * 80)
        ctx.send_event(Event("more"))

    async def more(event: Event, ctx: RunnerContext) -> None:
        await Turn()
        ctx.sensory_memory.set("other", "y" * 80)
        ctx.send_event(OutputEvent("too much"))

    agent = Agent("sizes").add_action("fill", [InputEvent], fill).add_action("more", ["more"], more)
    options = {AgentExecutionOptions.MAX_MEMORY_BYTES: 100}
    first = AgentHarness(agent, skip=True, options=options)
    first.send([("a", 1)])
    first.calls.step()
    second = AgentHarness(agent, skip=True, options=options, restore=first.save())
    second.resume()
    for harness in (first, second):
        harness.calls.finish_all()
        assert harness.values == []


def test_evicted_entries_are_reloaded_with_their_runs() -> None:
    """A state backend may evict what it has just stored."""
    harness = AgentHarness(asking())
    harness.send([("a", 1), ("a", 2)])
    harness.head.before_save()
    harness.entries().clear()
    harness.head.after_save()
    harness.calls.finish()
    saved = harness.save()
    second = AgentHarness(asking(), restore=saved)
    second.resume()
    second.calls.finish_all()
    assert second.values == [("a", 2, "asked", 2), ("a", 2, [1, 2], "-2.2")]


def test_a_removed_action_is_named() -> None:
    first = AgentHarness(asking())
    first.send([("a", 1)])
    saved = first.save()
    other = Agent("asking").add_action("other", [InputEvent], answered)
    second = AgentHarness(other, restore=saved)
    with pytest.raises(ProgramChanged) as caught:
        second.resume()
    text = str(caught.value)
    assert "agent 'asking': the checkpoint has a run that waits in action 'ask'" in text
    assert "restore the action" in text


def test_a_run_of_a_newer_format_is_rejected() -> None:
    harness = AgentHarness(asking())
    harness.send([("a", 1)])
    harness.head.before_save()
    harness.entries()["a"][RUN] = (99, "?")
    data = harness.snapshot()
    with pytest.raises(ProgramChanged, match="format 99 cannot be read"):
        AgentHarness(asking(), restore=data).resume()


def test_an_action_that_became_synchronous_continues_at_once() -> None:
    """The batch that releases a watermark never reverts it."""
    first = AgentHarness(asking())
    first.send([("a", 1)], [5], watermark=10)
    saved = first.save()
    plain = Agent("asking").add_action("ask", [InputEvent], answered)
    second = AgentHarness(plain, restore=saved)
    second.send([("a", 2), ("b", 3)], [11, 12], [-1, 7], watermark=8)
    assert second.scope is not None
    assert second.scope.watermark == 10
    marks = [item.watermark if isinstance(item, Emitted) else item for item in second.log]
    assert [mark for mark in marks if mark is not None] == sorted(mark for mark in marks if mark is not None)
    assert second.outlet().watermarks == [10]
