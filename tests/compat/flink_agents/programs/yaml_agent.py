"""An agent described in YAML, with the connection of the program."""

import os
from pathlib import Path

from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName, ResourceType
from pyflink.datastream import StreamExecutionEnvironment
from tickets import Ticket

current_dir = Path(__file__).parent

env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
agents_env.load_yaml(current_dir / "triage.yaml")
agents_env.add_resource(
    "ollama_server",
    ResourceType.CHAT_MODEL_CONNECTION,
    ResourceDescriptor(clazz=ResourceName.ChatModel.OLLAMA_CONNECTION, base_url=os.environ["OLLAMA_HOST"]),
)
lines = (current_dir / "data" / "tickets.jsonl").read_text().splitlines()
tickets = env.from_collection(lines).map(lambda x: Ticket.model_validate_json(x))
agents_env.from_datastream(input=tickets, key_selector=lambda x: x.id).apply("triage").to_datastream().print()
agents_env.execute("yaml")
