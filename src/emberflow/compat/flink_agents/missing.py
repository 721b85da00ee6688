"""Flink Agents APIs that are not supported, and their replacements: one sentence each, shown at the import."""

from __future__ import annotations

JAVA = "there is no JVM with Flink Agents' classes; use the Python class"
_RETRIEVAL = (
    "there is no retrieval yet; call the service's client in an action, in ctx.durable_execute_async()"
)
_TONGYI = "use OpenAIChatModelConnection with the address of DashScope's OpenAI-compatible endpoint"
_INTERNAL = "it is internal to Flink Agents; there is no replacement"

MODULES: dict[str, str] = {
    "flink_agents.api.chat_models.java_chat_model": JAVA,
    "flink_agents.api.embedding_models": _RETRIEVAL,
    "flink_agents.api.memory": "there is no long-term memory yet; keep it in short-term memory, or call a store in an action",
    "flink_agents.api.vector_stores": _RETRIEVAL,
    "flink_agents.api.version_compatibility": _INTERNAL,
    "flink_agents.api.yaml.specs": "agents in YAML are loaded with load_yaml() and have no classes of their own",
    "flink_agents.cli": "emberflow events show --tree prints the tree of a run",
    "flink_agents.integrations.chat_models.chat_model_utils": _INTERNAL,
    "flink_agents.integrations.chat_models.openai.openai_utils": _INTERNAL,
    "flink_agents.integrations.chat_models.tongyi_chat_model": _TONGYI,
    "flink_agents.integrations.embedding_models": _RETRIEVAL,
    "flink_agents.integrations.mcp.utils": _INTERNAL,
    "flink_agents.integrations.vector_stores": _RETRIEVAL,
    "flink_agents.plan.actions": "the built-in actions are part of every plan that needs them; they are not called directly",
    "flink_agents.plan.resource_provider": _INTERNAL,
    "flink_agents.plan.tools.bash.bash_validator": _INTERNAL,
    "flink_agents.plan.utils": _INTERNAL,
    "flink_agents.runtime.agent_runner": _INTERNAL,
    "flink_agents.runtime.durable_execution": _INTERNAL,
    "flink_agents.runtime.flink_memory_object": _INTERNAL,
    "flink_agents.runtime.flink_metric_group": _INTERNAL,
    "flink_agents.runtime.flink_runner_context": "annotate with flink_agents.api.runner_context.RunnerContext",
    "flink_agents.runtime.java": JAVA,
    "flink_agents.runtime.memory": _INTERNAL,
    "flink_agents.runtime.python_java_utils": JAVA,
    "flink_agents.runtime.remote_execution_environment": "use AgentsExecutionEnvironment.get_execution_environment()",
    "flink_agents.runtime.resource_cache": _INTERNAL,
    "flink_agents.runtime.resource_context": "annotate with flink_agents.api.resource_context.ResourceContext",
}
"""Modules, with all that is below them."""

_CHECKED = "arguments are checked when the tool is declared"
_PLACEHOLDERS = "Prompt.from_text(…).format_string(…) fills placeholders"
_REPORTS = "the event log records it; nothing needs to be reported by hand"
_SCHEMAS = "Tool.from_callable() makes the schema of a function"
_YAML = "use AgentsExecutionEnvironment.load_yaml()"

NAMES: dict[str, str] = {
    "AsyncExecutionResult": "durable_execute_async() returns something to await; annotate with Awaitable",
    "ContextRetrievalRequestEvent": _RETRIEVAL,
    "ContextRetrievalResponseEvent": _RETRIEVAL,
    "ExecutionEntityTypes": _REPORTS,
    "ExecutionLifecycleEvents": _REPORTS,
    "ExecutionProblemCategories": _REPORTS,
    "ExecutionReporter": _REPORTS,
    "ExecutionReporters": _REPORTS,
    "JavaFunction": "there is no JVM to call; use a Python function",
    "LLMExecutionMetadataKeys": _REPORTS,
    "SafeFormatter": _PLACEHOLDERS,
    "ToolExecutionMetadataKeys": _REPORTS,
    "ToolExecutionMetadataProvider": _REPORTS,
    "build_agents": _YAML,
    "create_model_from_schema": _SCHEMAS,
    "create_schema_from_function": _SCHEMAS,
    "find_first_system_message": "next(message for message in messages if message.role is MessageRole.SYSTEM)",
    "format_string": _PLACEHOLDERS,
    "java_resource": JAVA,
    "load_yaml": _YAML,
    "merge_injected_args": _CHECKED,
    "normalize_injected_args": _CHECKED,
    "resolve_clazz": _YAML,
    "resolve_event_type": _YAML,
    "resolve_function": _YAML,
    "validate_injected_arg_names": _CHECKED,
    "validate_memory_value": "values are checked when they are stored",
}
"""Names, wherever they are imported from."""

_STORE = (
    "remove it: durable calls are recorded without a service of their own; set --checkpoint-dir, so that a second start "
    "finds them"
)
OPTIONS: dict[str, str] = dict.fromkeys(
    (
        "ACTION_STATE_STORE_BACKEND",
        "FLUSS_ACTION_STATE_DATABASE",
        "FLUSS_ACTION_STATE_TABLE",
        "FLUSS_ACTION_STATE_TABLE_BUCKETS",
        "FLUSS_BOOTSTRAP_SERVERS",
        "FLUSS_SASL_JAAS_CONFIG",
        "FLUSS_SASL_MECHANISM",
        "FLUSS_SASL_PASSWORD",
        "FLUSS_SASL_USERNAME",
        "FLUSS_SECURITY_PROTOCOL",
        "KAFKA_ACTION_STATE_TOPIC",
        "KAFKA_ACTION_STATE_TOPIC_NUM_PARTITIONS",
        "KAFKA_ACTION_STATE_TOPIC_REPLICATION_FACTOR",
        "KAFKA_BOOTSTRAP_SERVERS",
    ),
    _STORE,
)
"""Options of `AgentConfigOptions`."""
