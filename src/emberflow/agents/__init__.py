"""Event-driven agents: everything a program imports."""

from emberflow.agents.agent import Agent
from emberflow.agents.builder import AgentBuilder
from emberflow.agents.chat_message import ChatMessage, MessageRole
from emberflow.agents.chat_model import BaseChatModelConnection, BaseChatModelSetup
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
from emberflow.agents.environment import AgentsExecutionEnvironment
from emberflow.agents.prompt import Prompt
from emberflow.agents.tool import FunctionTool, Tool, ToolMetadata, ToolType
from emberflow.agents.with_agent import with_agent
from emberflow.events.agent_events import ErrorEvent, Event, EventType, InputEvent, OutputEvent
from emberflow.operators.agents.guards.questions import HumanAnswer
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.config import ConfigOption, Configuration
from emberflow.plan.agents.guards import Budget, Retry
from emberflow.plan.agents.options import (
    AgentConfigOptions,
    AgentExecutionOptions,
    ConditionEvaluationFailureStrategy,
    ErrorHandling,
    EventLogLevel,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.agents.resources import (
    Resource,
    ResourceDescriptor,
    ResourceType,
    Secret,
    SerializableResource,
)
from emberflow.state.memory_object import MemoryObject, MemoryRef

__all__ = [
    "Agent",
    "AgentBuilder",
    "AgentConfigOptions",
    "AgentExecutionOptions",
    "AgentPlan",
    "AgentsExecutionEnvironment",
    "BaseChatModelConnection",
    "BaseChatModelSetup",
    "Budget",
    "ChatMessage",
    "ConditionEvaluationFailureStrategy",
    "ConfigOption",
    "Configuration",
    "ErrorEvent",
    "ErrorHandling",
    "Event",
    "EventLogLevel",
    "EventType",
    "FunctionTool",
    "HumanAnswer",
    "InputEvent",
    "MemoryObject",
    "MemoryRef",
    "MessageRole",
    "OutputEvent",
    "Prompt",
    "Resource",
    "ResourceDescriptor",
    "ResourceType",
    "Retry",
    "RunnerContext",
    "Secret",
    "SerializableResource",
    "ShortTermMemoryTtlUpdate",
    "Tool",
    "ToolMetadata",
    "ToolType",
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
    "with_agent",
]
