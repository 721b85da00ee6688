"""Which module defines each public name of the agent API."""

from __future__ import annotations

HOMES = {
    "emberflow.agents.agent": "Agent",
    "emberflow.agents.agent_skills.skills": "Skills SkillSourceSpec",
    "emberflow.agents.builder": "AgentBuilder",
    "emberflow.agents.built_in.chat_events": "ChatRequestEvent ChatResponseEvent",
    "emberflow.agents.built_in.react_agent": "ReActAgent",
    "emberflow.agents.built_in.tool_events": "ToolRequestEvent ToolResponseEvent",
    "emberflow.agents.models.chat_connection": "BaseChatModelConnection ChatChunk",
    "emberflow.agents.models.chat_message": "ChatMessage MessageRole",
    "emberflow.agents.models.chat_model": "BaseChatModelSetup",
    "emberflow.agents.decorators": """
        action chat_model_connection chat_model_setup embedding_model_connection
        embedding_model_setup mcp_server prompt skills tool vector_store
    """,
    "emberflow.agents.environment": "AgentsExecutionEnvironment",
    "emberflow.agents.frame_transform": "with_agent",
    "emberflow.agents.tools.function_tool": "FunctionTool Tool ToolMetadata ToolType",
    "emberflow.agents.models.image": "Image",
    "emberflow.agents.models.model_shortcuts": "ChatModel",
    "emberflow.agents.models.output_schema": "STRUCTURED_OUTPUT OutputSchema StructuredOutputStrategy",
    "emberflow.agents.models.prompt_text": "Prompt",
    "emberflow.agents.tools.tool_injection": "InjectedArg ToolParameterSource injected_arguments",
    "emberflow.agents.yaml.registry": "load_agents",
    "emberflow.events.agent_events": "ErrorEvent Event EventType InputEvent OutputEvent",
    "emberflow.events.memory_events": """
        AgentRunBeginEvent LongTermGetEvent LongTermSearchEvent LongTermUpdateEvent MemoryEvent
        SensoryReadEvent SensoryWriteEvent ShortTermReadEvent ShortTermWriteEvent
    """,
    "emberflow.operators.agents.guards.questions": "HumanAnswer",
    "emberflow.agents.action_context": "RunnerContext",
    "emberflow.plan.agents.agent_plan": "AgentPlan",
    "emberflow.plan.agents.config": "ConfigOption Configuration",
    "emberflow.plan.agents.guards": "Budget Retry",
    "emberflow.plan.agents.options": """
        AgentConfigOptions AgentExecutionOptions ConditionEvaluationFailureStrategy ErrorHandling
        ErrorHandlingStrategy EventLogLevel HistoryStrategy LoggerType MemoryEventOptions
        ShortTermMemoryTtlUpdate ShortTermMemoryTtlVisibility
    """,
    "emberflow.plan.agents.python_function": "PythonFunction",
    "emberflow.plan.agents.resources": "Resource ResourceDescriptor ResourceType Secret SerializableResource",
    "emberflow.state.memory_object": "MemoryObject MemoryRef MemoryType",
}
"""By module: the names, separated by blanks."""
