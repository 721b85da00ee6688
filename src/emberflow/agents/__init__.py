"""Event-driven agents: everything a program imports."""

from emberflow.agents.agent import Agent
from emberflow.agents.decorators import (
    action,
    chat_model_connection,
    chat_model_setup,
    embedding_model_connection,
    embedding_model_setup,
    mcp_server,
    prompt,
    skills,
    tool,
    vector_store,
)
from emberflow.events.agent_events import Event, EventType, InputEvent, OutputEvent
from emberflow.plan.agent_config import ConfigOption, Configuration
from emberflow.plan.agent_options import (
    AgentConfigOptions,
    AgentExecutionOptions,
    ConditionEvaluationFailureStrategy,
    ErrorHandling,
    EventLogLevel,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.agent_plan import AgentPlan
from emberflow.plan.resources import Resource, ResourceDescriptor, ResourceType, Secret, SerializableResource

__all__ = [
    "Agent",
    "AgentConfigOptions",
    "AgentExecutionOptions",
    "AgentPlan",
    "ConditionEvaluationFailureStrategy",
    "ConfigOption",
    "Configuration",
    "ErrorHandling",
    "Event",
    "EventLogLevel",
    "EventType",
    "InputEvent",
    "OutputEvent",
    "Resource",
    "ResourceDescriptor",
    "ResourceType",
    "Secret",
    "SerializableResource",
    "ShortTermMemoryTtlUpdate",
    "action",
    "chat_model_connection",
    "chat_model_setup",
    "embedding_model_connection",
    "embedding_model_setup",
    "mcp_server",
    "prompt",
    "skills",
    "tool",
    "vector_store",
]
