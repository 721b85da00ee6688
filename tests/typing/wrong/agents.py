"""Agents with mistakes that a type checker must find; each comment names the rule it reports in that line."""

from __future__ import annotations

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    Configuration,
    ErrorHandling,
    Event,
    Retry,
    RunnerContext,
)


async def look_up(name: str, depth: int = 1) -> list[str]:
    return [name] * depth


def price(item: str) -> float:
    return float(len(item))


class Priced(Event):
    amount: float


async def order(event: Priced, ctx: RunnerContext) -> None:
    await ctx.durable_execute_async(look_up, 1)  # error: reportCallIssue, reportArgumentType
    await ctx.durable_execute_async(look_up)  # error: reportCallIssue
    await ctx.durable_execute_async(look_up, "ann", dept=2)  # error: reportCallIssue
    ctx.durable_execute(price, 3)  # error: reportCallIssue, reportArgumentType
    ctx.durable_execute(price, "tea") + "euros"  # error: reportOperatorIssue
    names: list[int] = await ctx.durable_execute_async(look_up, "ann")  # error: reportAssignmentType
    ctx.send_event(Priced(amount="much"))  # error: reportArgumentType
    ctx.send_event(Priced())  # error: reportCallIssue
    ctx.send_event("done")  # error: reportArgumentType
    print(names)


def options(config: Configuration) -> None:
    steps_option = AgentExecutionOptions.MAX_STEPS
    config.set(steps_option, ErrorHandling.FAIL)  # error: reportCallIssue, reportArgumentType
    config.get("max-steps")  # error: reportArgumentType
    steps: str = config.get(AgentExecutionOptions.MAX_STEPS)  # error: reportAssignmentType
    Retry(attempt=3)  # error: reportCallIssue
    print(steps)


def inputs(env: AgentsExecutionEnvironment) -> None:
    env.from_list([]).apply(Agent)  # error: reportArgumentType
    env.add_resource("model", "chat_model", None)  # error: reportArgumentType
