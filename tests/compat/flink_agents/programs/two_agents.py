"""The outputs of one agent, gathered in windows, are the inputs of another."""

import os
from typing import Iterable

from flink_agents.api.agents.react_agent import ReActAgent
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.prompts.prompt import Prompt
from flink_agents.api.resource import ResourceDescriptor, ResourceName, ResourceType
from pyflink.common import Configuration
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTumblingWindowAssigner
from tickets import Ticket
from triage_agent import TriageAgent


class Gather(ProcessWindowFunction):
    def process(
        self, key: str, context: "ProcessWindowFunction.Context", elements: Iterable[dict]
    ) -> Iterable[dict]:
        found = sorted(elements, key=lambda each: each["id"])
        yield {"count": len(found), "urgencies": [each["urgency"] for each in found]}


config = Configuration()
config.set_string("python.fn-execution.bundle.size", "1")
env = StreamExecutionEnvironment.get_execution_environment(config)
env.set_parallelism(1)
agents_env = AgentsExecutionEnvironment.get_execution_environment(env=env)
agents_env.add_resource(
    "ollama_server",
    ResourceType.CHAT_MODEL_CONNECTION,
    ResourceDescriptor(clazz=ResourceName.ChatModel.OLLAMA_CONNECTION, base_url=os.environ["OLLAMA_HOST"]),
)
tickets = env.from_collection(
    [Ticket(id="t1", text="The parcel arrived crushed."), Ticket(id="t2", text="Great kettle, thank you.")]
)
gathered = (
    agents_env.from_datastream(input=tickets, key_selector=lambda x: x.id)
    .apply(TriageAgent())
    .to_datastream()
    .key_by(lambda x: "all")
    .window(CountTumblingWindowAssigner.of(2))
    .process(Gather())
)
advisor = ReActAgent(
    chat_model=ResourceDescriptor(
        clazz=ResourceName.ChatModel.OLLAMA_SETUP, connection="ollama_server", model="qwen3:8b"
    ),
    prompt=Prompt.from_text("Advise us: {count} tickets of urgency {urgencies}."),
)
agents_env.from_datastream(input=gathered, key_selector=lambda x: x["count"]).apply(
    advisor
).to_datastream().print()
agents_env.execute("two agents")
