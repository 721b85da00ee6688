"""Results go to files with Flink's older sink; afterwards the program lists the folder and reads all it finds."""

import json
import os
import tempfile
from pathlib import Path

from flink_agents.api.agents.agent import Agent
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.runner_context import RunnerContext
from pyflink.common import Configuration, Encoder
from pyflink.common.typeinfo import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import StreamingFileSink


class Lengths(Agent):
    @action(EventType.InputEvent)
    @staticmethod
    def measure(event: Event, ctx: RunnerContext) -> None:
        word = InputEvent.from_event(event).input
        ctx.send_event(OutputEvent(output={"word": word, "length": len(word)}))


config = Configuration()
config.set_string("state.backend.type", "rocksdb")
config.set_string("execution.checkpointing.interval", "1s")
config.set_string("restart-strategy.type", "disable")
env = StreamExecutionEnvironment.get_execution_environment(config)
env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
env.set_parallelism(1)
agents_env = AgentsExecutionEnvironment.get_execution_environment(env=env)
results = Path(tempfile.mkdtemp())
(
    agents_env.from_datastream(input=env.from_collection(["ember", "flow"]), key_selector=lambda x: x)
    .apply(Lengths())
    .to_datastream()
    .map(lambda x: json.dumps(x), Types.STRING())
    .add_sink(
        StreamingFileSink.for_row_format(
            base_path=str(results.absolute()), encoder=Encoder.simple_string_encoder()
        ).build()
    )
)
agents_env.execute()

for name in os.listdir(results):
    for part in (results / name).iterdir():
        print(part.read_text(), end="")
