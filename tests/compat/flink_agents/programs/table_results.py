"""A table of listed rows becomes the inputs of an agent, whose outputs are a table again, written to files."""

import tempfile
from pathlib import Path

from flink_agents.api.agents.agent import Agent
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.runner_context import RunnerContext
from pyflink.common.typeinfo import BasicTypeInfo, ExternalTypeInfo, RowTypeInfo
from pyflink.datastream import KeySelector, StreamExecutionEnvironment
from pyflink.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor


class Id(KeySelector):
    def get_key(self, value):
        return value.id


class Double(Agent):
    @action(EventType.InputEvent)
    @staticmethod
    def double(event: Event, ctx: RunnerContext) -> None:
        row = InputEvent.from_event(event).input
        row["amount"] *= 2
        ctx.send_event(OutputEvent(output=row))


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
t_env = StreamTableEnvironment.create(stream_execution_environment=env)
agents_env = AgentsExecutionEnvironment.get_execution_environment(env=env, t_env=t_env)
amounts = t_env.from_elements(
    [(1, 0.05), (2, 1.5)],
    DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("amount", DataTypes.FLOAT())]),
)
schema = Schema.new_builder().column("id", DataTypes.BIGINT()).column("amount", DataTypes.FLOAT()).build()
doubled = (
    agents_env.from_table(input=amounts, key_selector=Id())
    .apply(Double())
    .to_table(
        schema=schema,
        output_type=ExternalTypeInfo(
            RowTypeInfo([BasicTypeInfo.LONG_TYPE_INFO(), BasicTypeInfo.FLOAT_TYPE_INFO()], ["id", "amount"])
        ),
    )
)
results = Path(tempfile.mkdtemp()) / "results"
t_env.create_temporary_table(
    "sink",
    TableDescriptor.for_connector("filesystem")
    .option("path", str(results.absolute()))
    .format("json")
    .schema(schema)
    .build(),
)
doubled.execute_insert("sink").wait()
for part in sorted(results.iterdir()):
    print(part.read_text(), end="")
