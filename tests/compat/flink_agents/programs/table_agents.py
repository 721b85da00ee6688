"""Rows of a table are the inputs of one agent; its outputs, gathered in windows, are the inputs of another."""

import json
import os
from pathlib import Path
from typing import Iterable

from flink_agents.api.agents.agent import Agent
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.core_options import AgentExecutionOptions
from flink_agents.api.decorators import action, chat_model_setup
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName, ResourceType
from flink_agents.api.runner_context import RunnerContext
from pyflink.common import Configuration, Time
from pyflink.datastream import KeySelector, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingProcessingTimeWindows
from pyflink.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor
from pyflink.table.expressions import col

DELIVERIES = f"file:///{Path(__file__).parent}/data/deliveries.jsonl"


class OrderOf(KeySelector):
    def get_key(self, value):
        return value["order"]


class Grader(Agent):
    """Has a model grade what a customer noted about a delivery."""

    @chat_model_setup
    @staticmethod
    def grader() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_SETUP, connection="ollama_server", model="qwen3:8b"
        )

    @action(EventType.InputEvent)
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        row = InputEvent.from_event(event).input
        ctx.short_term_memory.set("order", str(row["order"]))
        message = ChatMessage(
            role=MessageRole.USER, content=f"Grade this delivery: {row['note']} ({row['at']})"
        )
        ctx.send_event(ChatRequestEvent(model="grader", messages=[message]))

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def grade(event: Event, ctx: RunnerContext) -> None:
        found = json.loads(ChatResponseEvent.from_event(event).response.content)
        ctx.send_event(
            OutputEvent(output={"order": ctx.short_term_memory.get("order"), "grade": found["grade"]})
        )


class Gather(ProcessWindowFunction):
    def process(
        self, key: str, context: "ProcessWindowFunction.Context", elements: Iterable[dict]
    ) -> Iterable[dict]:
        yield {"order": key, "grades": sorted(each["grade"] for each in elements)}


class Adviser(Agent):
    """Turns the grades of an order into advice."""

    @action(EventType.InputEvent)
    @staticmethod
    def advise(event: Event, ctx: RunnerContext) -> None:
        summary = InputEvent.from_event(event).input
        advice = "talk to the driver" if min(summary["grades"]) < 3 else "nothing to do"
        ctx.send_event(OutputEvent(output=f"{summary['order']} {summary['grades']}: {advice}"))


def main() -> None:
    config = Configuration()
    config.set_string("pipeline.auto-watermark-interval", "1ms")
    config.set_string("python.fn-execution.bundle.size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    t_env = StreamTableEnvironment.create(stream_execution_environment=env)
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env=env, t_env=t_env)
    agents_env.get_config().set(AgentExecutionOptions.NUM_ASYNC_THREADS, 2)
    agents_env.add_resource(
        "ollama_server",
        ResourceType.CHAT_MODEL_CONNECTION,
        ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_CONNECTION, base_url=os.environ["OLLAMA_HOST"]
        ),
    )
    schema = (
        Schema.new_builder()
        .column("order", DataTypes.STRING())
        .column("note", DataTypes.STRING())
        .column("at", DataTypes.BIGINT())
        .column_by_expression("rowtime", "TO_TIMESTAMP_LTZ(`at` * 1000, 3)")
        .watermark("rowtime", "rowtime - INTERVAL '0' SECOND")
        .build()
    )
    t_env.create_temporary_table(
        "deliveries",
        TableDescriptor.for_connector("filesystem")
        .schema(schema)
        .option("format", "json")
        .option("path", DELIVERIES)
        .build(),
    )
    deliveries = t_env.from_path("deliveries").select(col("order"), col("note"), col("at"))
    graded = agents_env.from_table(input=deliveries, key_selector=OrderOf()).apply(Grader()).to_datastream()
    gathered = (
        graded.key_by(lambda x: x["order"])
        .window(TumblingProcessingTimeWindows.of(Time.minutes(1)))
        .process(Gather())
    )
    agents_env.from_datastream(input=gathered, key_selector=lambda x: x["order"]).apply(
        Adviser()
    ).to_datastream().print()
    agents_env.execute("deliveries")


if __name__ == "__main__":
    main()
