"""The modules of Flink Agents (0.3.1 and main) that a program can import, and the names in each of them.

A name is found under the same name in `emberflow.agents`, unless `HOMES` names another module. A name that is not there is
missing: `missing.py` says what to use instead.
"""

from __future__ import annotations

AGENTS = "emberflow.agents"

_COMPAT = "emberflow.compat.flink_agents"
_MODELS = "emberflow.integrations.chat_models"
_METRICS = "emberflow.observability.metric_group"
_OPTIONS = "emberflow.plan.agents.options"

HOMES: dict[str, str] = {
    "AgentConfigOptions": f"{_COMPAT}.core_options",
    "AgentConfiguration": f"{AGENTS}:Configuration",
    "AgentsExecutionEnvironment": f"{_COMPAT}.execution_environment",
    "AnthropicChatModelConnection": f"{_MODELS}.anthropic",
    "AnthropicChatModelSetup": f"{_COMPAT}.chat_models",
    "AzureOpenAIChatModelConnection": f"{_MODELS}.azure_openai",
    "AzureOpenAIChatModelSetup": f"{_MODELS}.azure_openai",
    "BashTool": f"{AGENTS}.shell.bash_tool",
    "Counter": _METRICS,
    "ErrorHandlingStrategy": _OPTIONS,
    "Function": f"{AGENTS}:PythonFunction",
    "Gauge": _METRICS,
    "Histogram": _METRICS,
    "LoadSkillTool": f"{AGENTS}.agent_skills.load_skill_tool",
    "LocalPrompt": f"{_COMPAT}.prompt:Prompt",
    "MCPPrompt": "emberflow.integrations.mcp",
    "MCPServer": "emberflow.integrations.mcp",
    "MCPTool": "emberflow.integrations.mcp",
    "MemoryEventOptions": _OPTIONS,
    "Meter": _METRICS,
    "MetricGroup": _METRICS,
    "OllamaChatModelConnection": f"{_MODELS}.ollama",
    "OllamaChatModelSetup": f"{_COMPAT}.chat_models",
    "OpenAIChatModelConnection": f"{_COMPAT}.chat_models",
    "OpenAIChatModelSetup": f"{_COMPAT}.chat_models",
    "Prompt": f"{_COMPAT}.prompt",
    "ReadableConfiguration": f"{AGENTS}:Configuration",
    "ResourceContext": "emberflow.plan.agents.resources",
    "ResourceDescriptor": f"{_COMPAT}.resource_descriptor",
    "ResourceName": f"{_COMPAT}.resource_name",
    "VLLMChatModelConnection": f"{_COMPAT}.chat_models",
    "VLLMChatModelSetup": f"{_COMPAT}.chat_models",
    "WritableConfiguration": f"{AGENTS}:Configuration",
    "get_resource_class": f"{_COMPAT}.resource_descriptor",
}
"""Names that are found elsewhere than in `emberflow.agents`: the module, or `module:Name`."""

VALUES: dict[str, object] = {
    "flink_agents.__version__": "0.3.1",
    "flink_agents.api.skills.BASH_TOOL": "bash",
    "flink_agents.api.skills.LOAD_SKILL_TOOL": "load_skill",
}
"""Names that stand for a plain value. The version is that of the interface."""

_CHAT_EVENTS = "ChatRequestEvent ChatResponseEvent"
_TOOL_EVENTS = "ToolRequestEvent ToolResponseEvent"
_INJECTION = "InjectedArg ToolParameterSource"
_METADATA_KEYS = "LLMExecutionMetadataKeys ToolExecutionMetadataKeys"
_REPORTING = "ExecutionEntityTypes ExecutionProblemCategories ExecutionReporter ExecutionReporters"

NAMES: dict[str, str] = {
    "flink_agents": "",
    "flink_agents.api": "",
    "flink_agents.api.agents": "",
    "flink_agents.api.agents.agent": "Agent STRUCTURED_OUTPUT",
    "flink_agents.api.agents.react_agent": "OutputSchema ReActAgent",
    "flink_agents.api.agents.types": "OutputSchema",
    "flink_agents.api.chat_message": "ChatMessage MessageRole find_first_system_message",
    "flink_agents.api.chat_models": "",
    "flink_agents.api.chat_models.chat_model": """
        BaseChatModelConnection BaseChatModelSetup StructuredOutputStrategy
    """,
    "flink_agents.api.configuration": "ConfigOption Configuration ReadableConfiguration WritableConfiguration",
    "flink_agents.api.core_options": """
        AgentConfigOptions AgentExecutionOptions ConditionEvaluationFailureStrategy ErrorHandlingStrategy EventLogLevel
        LoggerType MemoryEventOptions ShortTermMemoryTtlUpdate ShortTermMemoryTtlVisibility
    """,
    "flink_agents.api.decorators": """
        action chat_model_connection chat_model_setup embedding_model_connection embedding_model_setup java_resource
        mcp_server prompt skills tool vector_store
    """,
    "flink_agents.api.events": "",
    "flink_agents.api.events.chat_event": _CHAT_EVENTS,
    "flink_agents.api.events.context_retrieval_event": """
        ContextRetrievalRequestEvent ContextRetrievalResponseEvent
    """,
    "flink_agents.api.events.event": "Event InputEvent OutputEvent",
    "flink_agents.api.events.event_type": "EventType",
    "flink_agents.api.events.memory_event": """
        LongTermGetEvent LongTermSearchEvent LongTermUpdateEvent MemoryEvent SensoryReadEvent SensoryWriteEvent
        ShortTermReadEvent ShortTermWriteEvent
    """,
    "flink_agents.api.events.run_event": "AgentRunBeginEvent",
    "flink_agents.api.events.tool_event": _TOOL_EVENTS,
    "flink_agents.api.execution_environment": "AgentBuilder AgentsExecutionEnvironment",
    "flink_agents.api.function": "Function JavaFunction PythonFunction",
    "flink_agents.api.memory_object": "MemoryObject MemoryType validate_memory_value",
    "flink_agents.api.memory_reference": "MemoryRef",
    "flink_agents.api.metric_group": "Counter Gauge Histogram Meter MetricGroup",
    "flink_agents.api.prompts": "",
    "flink_agents.api.prompts.prompt": "LocalPrompt Prompt",
    "flink_agents.api.prompts.utils": "SafeFormatter format_string",
    "flink_agents.api.resource": """
        Resource ResourceDescriptor ResourceName ResourceType SerializableResource get_resource_class
    """,
    "flink_agents.api.resource_context": "ResourceContext",
    "flink_agents.api.runner_context": "AsyncExecutionResult RunnerContext",
    "flink_agents.api.skills": "SkillSourceSpec Skills",
    "flink_agents.api.tools": f"{_INJECTION} ToolExecutionMetadataProvider",
    "flink_agents.api.tools.function_tool": "FunctionTool",
    "flink_agents.api.tools.tool": "Tool ToolMetadata ToolType",
    "flink_agents.api.tools.tool_execution_metadata_provider": "ToolExecutionMetadataProvider",
    "flink_agents.api.tools.tool_parameter_injection": f"""
        {_INJECTION} merge_injected_args normalize_injected_args validate_injected_arg_names
    """,
    "flink_agents.api.tools.utils": "create_model_from_schema create_schema_from_function",
    "flink_agents.api.trace": f"ExecutionLifecycleEvents {_METADATA_KEYS} {_REPORTING}",
    "flink_agents.api.trace.execution_lifecycle_events": "ExecutionLifecycleEvents",
    "flink_agents.api.trace.execution_reporter": _REPORTING,
    "flink_agents.api.trace.llm_execution_metadata_keys": "LLMExecutionMetadataKeys",
    "flink_agents.api.trace.tool_execution_metadata_keys": "ToolExecutionMetadataKeys",
    "flink_agents.api.yaml": "",
    "flink_agents.api.yaml.aliases": "resolve_clazz resolve_event_type",
    "flink_agents.api.yaml.loader": "build_agents load_yaml resolve_function",
    "flink_agents.integrations": "",
    "flink_agents.integrations.chat_models": "",
    "flink_agents.integrations.chat_models.anthropic": "",
    "flink_agents.integrations.chat_models.anthropic.anthropic_chat_model": """
        AnthropicChatModelConnection AnthropicChatModelSetup
    """,
    "flink_agents.integrations.chat_models.azure": "",
    "flink_agents.integrations.chat_models.azure.azure_openai_chat_model": """
        AzureOpenAIChatModelConnection AzureOpenAIChatModelSetup
    """,
    "flink_agents.integrations.chat_models.ollama_chat_model": "OllamaChatModelConnection OllamaChatModelSetup",
    "flink_agents.integrations.chat_models.openai": "",
    "flink_agents.integrations.chat_models.openai.openai_chat_model": """
        OpenAIChatModelConnection OpenAIChatModelSetup
    """,
    "flink_agents.integrations.chat_models.vllm": "",
    "flink_agents.integrations.chat_models.vllm.vllm_chat_model": """
        VLLMChatModelConnection VLLMChatModelSetup
    """,
    "flink_agents.integrations.mcp": "",
    "flink_agents.integrations.mcp.mcp": "MCPPrompt MCPServer MCPTool",
    "flink_agents.plan": "",
    "flink_agents.plan.agent_plan": "AgentPlan",
    "flink_agents.plan.configuration": "AgentConfiguration",
    "flink_agents.plan.function": "Function JavaFunction PythonFunction",
    "flink_agents.plan.tools": "",
    "flink_agents.plan.tools.bash": "",
    "flink_agents.plan.tools.bash.bash_tool": "BashTool",
    "flink_agents.plan.tools.function_tool": "FunctionTool",
    "flink_agents.runtime": "",
    "flink_agents.runtime.skill": "",
    "flink_agents.runtime.skill.skill_tools": "LoadSkillTool",
}
"""Flink Agents' module -> the names in it."""
