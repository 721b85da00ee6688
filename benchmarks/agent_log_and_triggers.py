"""The cost of the event log for the two-action agent, and of a condition instead of an event type, in one process."""

from __future__ import annotations

import statistics
import tempfile
from typing import Any

from benchmarks.agent_jobs import Counted, TwoActions, input_of, with_agent
from benchmarks.agent_neighbours import Inputs
from benchmarks.agent_two_actions_local import seconds
from benchmarks.measurement import Measure, Options, at_most
from emberflow.agents import Agent, AgentConfigOptions, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import StreamExecutionEnvironment

COUNTED = Counted.EVENT_TYPE


def _answer(event: Any, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent(output=(event.number, event.seen)))


def _is_seen(event: Any) -> bool:
    return event.type == COUNTED and event.seen > 0


class _Counting(Agent):
    @action(InputEvent)
    def count(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Counted(number=event.input[1], seen=1))


class ByType(_Counting):
    @action(Counted)
    def tell(event: Any, ctx: RunnerContext) -> None:
        _answer(event, ctx)


class ByExpression(_Counting):
    @action(f"type == '{COUNTED}' && seen > 0")
    def tell(event: Any, ctx: RunnerContext) -> None:
        _answer(event, ctx)


class ByPredicate(_Counting):
    @action(_is_seen)
    def tell(event: Any, ctx: RunnerContext) -> None:
        _answer(event, ctx)


def run(options: Options) -> list[Measure]:
    inputs = [input_of(index) for index in range(options.pick(30_000, 200_000))]
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-") as folder:
        logged = {AgentConfigOptions.BASE_LOG_DIR: folder}
        # In turns, so that other load on the machine affects all of them.
        for _ in range(options.pick(2, 5)):
            for name, agent, settings in (
                ("log off", TwoActions(), None),
                ("log on", TwoActions(), logged),
                ("type", ByType(), None),
                ("CEL", ByExpression(), None),
                ("predicate", ByPredicate(), None),
            ):
                took.setdefault(name, []).append(agent_seconds(inputs, agent, settings))
    options.details.update(took)
    per_input = {name: statistics.median(found) / len(inputs) for name, found in took.items()}
    return [
        Measure(
            name="event log on against off",
            value=per_input["log on"] / per_input["log off"],
            unit="×",
            bar=at_most(1.5),
        ),
        Measure(name="with the event log", value=1 / per_input["log on"], unit="inputs/s"),
        Measure(name="without", value=1 / per_input["log off"], unit="inputs/s"),
        _beyond_type("CEL condition beyond a type, per event", per_input, "CEL"),
        _beyond_type("Python condition beyond a type, per event", per_input, "predicate"),
    ]


def _beyond_type(name: str, per_input: dict[str, float], kind: str) -> Measure:
    # Of the three events of an input, one matches the type in the condition: that one is evaluated.
    return Measure(name=name, value=(per_input[kind] - per_input["type"]) * 1e6, unit="µs")


def agent_seconds(inputs: Inputs, agent: Agent, settings: Any) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    return seconds(with_agent(env.from_collection(inputs), agent, settings))
