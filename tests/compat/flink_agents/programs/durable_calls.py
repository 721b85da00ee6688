"""Durable calls, plain and awaited, with a reconciler; metrics, settings and actions of functions."""

import time

from flink_agents.api.agents.agent import Agent
from flink_agents.api.core_options import AgentExecutionOptions, ErrorHandlingStrategy
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.runner_context import RunnerContext
from pyflink.datastream import StreamExecutionEnvironment


class Shop(Agent):
    @action(EventType.InputEvent)
    @staticmethod
    def order(event: Event, ctx: RunnerContext) -> None:
        started = time.time_ns()
        item = InputEvent.from_event(event).input

        def price(name: str) -> int:
            return len(name)

        def look_up() -> int:
            return 0

        cost = ctx.durable_execute(price, item, reconciler=look_up)
        ctx.agent_metric_group.get_counter("orders").inc()
        ctx.agent_metric_group.get_meter("ordersPerSecond").mark()
        ctx.action_metric_group.get_histogram("latency").update(int(time.time_ns() - started) // 1000000)
        ctx.send_event(Event(type="priced", attributes={"item": item, "cost": cost}))

    @action("type == 'priced' && cost > 4")
    @staticmethod
    async def expensive(event: Event, ctx: RunnerContext) -> None:
        def discounted(cost: int) -> int:
            return cost - ctx.config.get_int("discount", 1)

        cost = await ctx.durable_execute_async(discounted, event.get_attr("cost"))
        ctx.send_event(OutputEvent(output=f"{event.get_attr('item')} {cost}"))


def cheap(event: Event, ctx: RunnerContext) -> None:
    if event.get_attr("cost") <= 4:
        ctx.send_event(OutputEvent(output=f"{event.get_attr('item')} {event.get_attr('cost')}"))


env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
config = agents_env.get_config()
config.set_int("discount", 2)
config.set(AgentExecutionOptions.ERROR_HANDLING_STRATEGY, ErrorHandlingStrategy.RETRY)
config.set(AgentExecutionOptions.MAX_RETRIES, 2)
agent = Shop()
agent.add_action("cheap", ["priced"], cheap)
orders = env.from_collection(["cup", "kettle", "teapot"])
agents_env.from_datastream(input=orders, key_selector=lambda x: x).apply(agent).to_datastream().print()
agents_env.execute("durable calls")
