"""A ReAct agent with a tool and a typed answer."""

import os
from pathlib import Path

from flink_agents.api.agents.react_agent import ReActAgent
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName, ResourceType
from flink_agents.api.tools.tool import Tool
from pyflink.common import WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from tickets import Ticket, Triage, fields_prompt, report_damage

current_dir = Path(__file__).parent

env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
agents_env.add_resource(
    "ollama_server",
    ResourceType.CHAT_MODEL_CONNECTION,
    ResourceDescriptor(
        clazz=ResourceName.ChatModel.OLLAMA_CONNECTION,
        base_url=os.environ["OLLAMA_HOST"],
        request_timeout=120,
    ),
).add_resource("report_damage", ResourceType.TOOL, Tool.from_callable(report_damage))
tickets = env.from_source(
    source=FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), f"file:///{current_dir}/data/tickets.jsonl"
    ).build(),
    watermark_strategy=WatermarkStrategy.no_watermarks(),
    source_name="tickets",
).map(lambda x: Ticket.model_validate_json(x))
agent = ReActAgent(
    chat_model=ResourceDescriptor(
        clazz=ResourceName.ChatModel.OLLAMA_SETUP,
        connection="ollama_server",
        model="qwen3:8b",
        tools=["report_damage"],
    ),
    prompt=fields_prompt,
    output_schema=Triage,
)
agents_env.from_datastream(input=tickets, key_selector=lambda x: x.id).apply(agent).to_datastream().map(
    lambda found: f"{found['id']} {found['urgency']} {found['tags']}"
).print()
agents_env.execute("react")
