"""A local source waits while agents are at their limit, and the job reports how long (C9)."""

from __future__ import annotations

import asyncio
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.plan.job_contract import JobMetrics
from emberflow.streams import (
    CollectSink,
    DataGeneratorSource,
    RateLimiterStrategy,
    StreamExecutionEnvironment,
)

INPUTS = 6_000
in_flight: list[int] = [0, 0]


async def slow(event: InputEvent, ctx: RunnerContext) -> None:
    in_flight[0] += 1
    in_flight[1] = max(in_flight)
    await asyncio.sleep(0.01)
    in_flight[0] -= 1
    ctx.send_event(OutputEvent(event.input))


def run(source: DataGeneratorSource, most: int) -> JobMetrics:
    in_flight[:] = [0, 0]
    found: list[Any] = []
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.MAX_IN_FLIGHT, most)
    agent = Agent("slow").add_action("act", [InputEvent], slow)
    outputs = agents_env.from_datastream(env.from_source(source), lambda value: value).apply(agent)
    outputs.to_datastream().sink_to(CollectSink(lambda batch: found.extend(batch.values)))
    metrics = env.execute("pressure").metrics
    assert sorted(found) == list(range(len(found)))
    return metrics


def test_a_source_that_must_wait_is_back_pressured() -> None:
    metrics = run(DataGeneratorSource(lambda index: index, count=INPUTS, parallelism=1), most=100)
    assert in_flight[1] == 100, "as many as allowed, and no more"
    assert metrics.records_in == INPUTS
    assert metrics.source_back_pressured_ms > metrics.source_idle_ms
    assert metrics.back_pressured_ratio > 0.2


def test_a_source_without_backpressure_is_not_back_pressured() -> None:
    slowly = RateLimiterStrategy.per_second(200)
    metrics = run(
        DataGeneratorSource(lambda index: index, count=60, rate_limiter_strategy=slowly, parallelism=1),
        most=10_000,
    )
    assert metrics.source_back_pressured_ms == 0
    assert metrics.back_pressured_ratio == 0
    assert metrics.source_idle_ms > 0
