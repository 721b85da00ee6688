"""What a type checker infers for agents: durable calls, options, inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from emberflow.agents import (
    Agent,
    AgentBuilder,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ChatMessage,
    ConfigOption,
    Configuration,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment


async def look_up(name: str, depth: int = 1) -> list[str]:
    return [name] * depth


def price(item: str) -> float:
    return float(len(item))


async def pay(amount: float, *, idempotency_key: str) -> bytes:
    return idempotency_key.encode()


def pay_now(amount: float, idempotency_key: str = "") -> bytes:
    return idempotency_key.encode()


@dataclass
class Answer:
    number: int


class Priced(Event):
    amount: float
    names: list[str]


class Shop(Agent):
    @action(InputEvent)
    @staticmethod
    async def order(event: InputEvent, ctx: RunnerContext) -> None:
        assert_type(await ctx.durable_execute_async(look_up, "ann", depth=2), list[str])
        assert_type(await ctx.durable_execute_async(price, "tea"), float)
        assert_type(await ctx.durable_execute_async(pay, 1.5), bytes)
        assert_type(await ctx.durable_execute_async(pay_now, 1.5), bytes)
        assert_type(await ctx.durable_execute_async(price, "tea", reconciler=lambda: 1.0), float)
        assert_type(await ctx.durable_execute_async(look_up, "ann", reconciler=lambda: ["ann"]), list[str])
        assert_type(await ctx.durable_execute_async(lambda: 1), int)
        assert_type(await ctx.chat("model", "how many?"), ChatMessage)
        assert_type(await ctx.chat("model", "how many?", output=Answer), Answer)
        assert_type(await ctx.chat("model", "which?", {"n": 3}, output=list[str], max_steps=5), list[str])
        assert_type(await ctx.chat("model", "which?", output={"type": "object"}), Any)
        ctx.send_event(Priced(amount=1.0, names=["ann"]))

    @action(Priced)
    @staticmethod
    def paid(event: Priced, ctx: RunnerContext) -> None:
        assert_type(event.amount, float)
        assert_type(ctx.durable_execute(price, "tea"), float)
        assert_type(ctx.durable_execute(pay_now, 1.5), bytes)
        assert_type(ctx.durable_execute(price, "tea", reconciler=lambda: 1.0), float)
        assert_type(ctx.config.get(AgentExecutionOptions.MAX_STEPS), int)
        ctx.send_event(OutputEvent(event.amount))


def options(config: Configuration) -> None:
    assert_type(ConfigOption("my.retries", int, 3), ConfigOption[int])
    assert_type(ConfigOption("my.model", str), ConfigOption[str | None])
    assert_type(config.get(ConfigOption("my.model", str)), str | None)
    assert_type(config.get(AgentExecutionOptions.ON_ERROR), ErrorHandling)
    assert_type(config.get(AgentConfigOptions.BASE_LOG_DIR), str | None)
    assert_type(config.set(AgentExecutionOptions.MAX_STEPS, 5), Configuration)
    config.set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP).set(AgentExecutionOptions.ON_ERROR, "skip")
    config.set("max-steps", 5)


def inputs_and_outputs() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    builder = agents.from_datastream(env.from_collection(["a"]), lambda word: word[0])
    assert_type(builder, AgentBuilder)
    assert_type(builder.apply(Shop()).to_datastream(), DataStream[Any])
    assert_type(builder.to_list(), list[Any])
