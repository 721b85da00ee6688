"""Tickets from a file that is watched for more; the job runs until it is stopped."""

from pathlib import Path

from flink_agents.api.core_options import AgentExecutionOptions
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName, ResourceType
from pyflink.common import Duration, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from tickets import Ticket
from triage_agent import TriageAgent

current_dir = Path(__file__).parent


def main() -> None:
    """Build the job and run it."""
    env = StreamExecutionEnvironment.get_execution_environment()
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.NUM_ASYNC_THREADS, 2)
    agents_env.add_resource(
        "ollama_server",
        ResourceType.CHAT_MODEL_CONNECTION,
        ResourceDescriptor(clazz=ResourceName.ChatModel.OLLAMA_CONNECTION, request_timeout=120),
    )
    tickets = env.from_source(
        source=FileSource.for_record_stream_format(
            StreamFormat.text_line_format(), f"file:///{current_dir}/data/tickets.jsonl"
        )
        .monitor_continuously(Duration.of_minutes(1))
        .build(),
        watermark_strategy=WatermarkStrategy.no_watermarks(),
        source_name="tickets",
    ).map(lambda x: Ticket.model_validate_json(x))
    sorted_tickets = (
        agents_env.from_datastream(input=tickets, key_selector=lambda x: x.id)
        .apply(TriageAgent())
        .to_datastream()
    )
    sorted_tickets.print()
    agents_env.execute("workflow")


if __name__ == "__main__":
    main()
