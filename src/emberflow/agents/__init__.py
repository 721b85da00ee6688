"""Event-driven agents: everything a program imports."""

from typing import TYPE_CHECKING

from emberflow.agents.name_homes import HOMES
from emberflow.lazy_names import lazy_names

if TYPE_CHECKING:
    from emberflow.agents.action_context import RunnerContext
    from emberflow.agents.agent import Agent
    from emberflow.agents.agent_skills.skills import Skills, SkillSourceSpec
    from emberflow.agents.builder import AgentBuilder
    from emberflow.agents.built_in.chat_events import ChatRequestEvent, ChatResponseEvent
    from emberflow.agents.built_in.react_agent import ReActAgent
    from emberflow.agents.built_in.tool_events import ToolRequestEvent, ToolResponseEvent
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
    from emberflow.agents.frame_transform import with_agent
    from emberflow.agents.models.chat_connection import BaseChatModelConnection, ChatChunk
    from emberflow.agents.models.chat_message import ChatMessage, MessageRole
    from emberflow.agents.models.chat_model import BaseChatModelSetup
    from emberflow.agents.models.image import Image
    from emberflow.agents.models.model_shortcuts import ChatModel
    from emberflow.agents.models.output_schema import (
        STRUCTURED_OUTPUT,
        OutputSchema,
        StructuredOutputStrategy,
    )
    from emberflow.agents.models.prompt_text import Prompt
    from emberflow.agents.tools.function_tool import FunctionTool, Tool, ToolMetadata, ToolType
    from emberflow.agents.tools.tool_injection import InjectedArg, ToolParameterSource, injected_arguments
    from emberflow.agents.yaml.registry import load_agents
    from emberflow.events.agent_events import ErrorEvent, Event, EventType, InputEvent, OutputEvent
    from emberflow.events.memory_events import (
        AgentRunBeginEvent,
        LongTermGetEvent,
        LongTermSearchEvent,
        LongTermUpdateEvent,
        MemoryEvent,
        SensoryReadEvent,
        SensoryWriteEvent,
        ShortTermReadEvent,
        ShortTermWriteEvent,
    )
    from emberflow.operators.agents.guards.questions import HumanAnswer
    from emberflow.plan.agents.agent_plan import AgentPlan
    from emberflow.plan.agents.config import ConfigOption, Configuration
    from emberflow.plan.agents.guards import Budget, Retry
    from emberflow.plan.agents.options import (
        AgentConfigOptions,
        AgentExecutionOptions,
        ConditionEvaluationFailureStrategy,
        ErrorHandling,
        ErrorHandlingStrategy,
        EventLogLevel,
        HistoryStrategy,
        LoggerType,
        MemoryEventOptions,
        ShortTermMemoryTtlUpdate,
        ShortTermMemoryTtlVisibility,
    )
    from emberflow.plan.agents.python_function import PythonFunction
    from emberflow.plan.agents.resources import (
        Resource,
        ResourceDescriptor,
        ResourceType,
        Secret,
        SerializableResource,
    )
    from emberflow.state.memory_object import MemoryObject, MemoryRef, MemoryType
else:
    # Names are imported when they are first used.
    __getattr__, __dir__ = lazy_names(__name__, HOMES)

__all__ = [
    "STRUCTURED_OUTPUT",
    "Agent",
    "AgentBuilder",
    "AgentConfigOptions",
    "AgentExecutionOptions",
    "AgentPlan",
    "AgentRunBeginEvent",
    "AgentsExecutionEnvironment",
    "BaseChatModelConnection",
    "BaseChatModelSetup",
    "Budget",
    "ChatChunk",
    "ChatMessage",
    "ChatModel",
    "ChatRequestEvent",
    "ChatResponseEvent",
    "ConditionEvaluationFailureStrategy",
    "ConfigOption",
    "Configuration",
    "ErrorEvent",
    "ErrorHandling",
    "ErrorHandlingStrategy",
    "Event",
    "EventLogLevel",
    "EventType",
    "FunctionTool",
    "HistoryStrategy",
    "HumanAnswer",
    "Image",
    "InjectedArg",
    "InputEvent",
    "LoggerType",
    "LongTermGetEvent",
    "LongTermSearchEvent",
    "LongTermUpdateEvent",
    "MemoryEvent",
    "MemoryEventOptions",
    "MemoryObject",
    "MemoryRef",
    "MemoryType",
    "MessageRole",
    "OutputEvent",
    "OutputSchema",
    "Prompt",
    "PythonFunction",
    "ReActAgent",
    "Resource",
    "ResourceDescriptor",
    "ResourceType",
    "Retry",
    "RunnerContext",
    "Secret",
    "SensoryReadEvent",
    "SensoryWriteEvent",
    "SerializableResource",
    "ShortTermMemoryTtlUpdate",
    "ShortTermMemoryTtlVisibility",
    "ShortTermReadEvent",
    "ShortTermWriteEvent",
    "SkillSourceSpec",
    "Skills",
    "StructuredOutputStrategy",
    "Tool",
    "ToolMetadata",
    "ToolParameterSource",
    "ToolRequestEvent",
    "ToolResponseEvent",
    "ToolType",
    "action",
    "chat_model_connection",
    "chat_model_setup",
    "embedding_model_connection",
    "embedding_model_setup",
    "injected_arguments",
    "load_agents",
    "mcp_server",
    "prompt",
    "skills",
    "tool",
    "vector_store",
    "with_agent",
]
