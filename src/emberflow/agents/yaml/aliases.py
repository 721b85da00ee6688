"""Short names in YAML files, as in Flink Agents: of event types, and of classes by the section they are used in."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from contextvars import ContextVar

from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.errors import did_you_mean
from emberflow.events.agent_events import InputEvent, OutputEvent
from emberflow.plan.agents.actions import Written, WrittenCondition
from emberflow.plan.agents.resources import ResourceType

EVENT_ALIASES = {
    "input": InputEvent.EVENT_TYPE,
    "output": OutputEvent.EVENT_TYPE,
    "chat_request": "_chat_request_event",
    "chat_response": "_chat_response_event",
    "tool_request": "_tool_request_event",
    "tool_response": "_tool_response_event",
    "context_retrieval_request": "_context_retrieval_request_event",
    "context_retrieval_response": "_context_retrieval_response_event",
}

_CHAT = ".".join(("emberflow", "integrations", "chat_models"))

CLASS_ALIASES: dict[ResourceType, dict[str, str]] = {
    ResourceType.CHAT_MODEL_CONNECTION: {
        "ollama": f"{_CHAT}.ollama.OllamaChatModelConnection",
        "anthropic": f"{_CHAT}.anthropic.AnthropicChatModelConnection",
        "llama_cpp": f"{_CHAT}.llama_cpp.LlamaCppChatModelConnection",
        "openai": f"{_CHAT}.openai.OpenAIChatModelConnection",
        "openai_compatible": f"{_CHAT}.openai.OpenAICompatibleChatModelConnection",
        "azure_openai": f"{_CHAT}.azure_openai.AzureOpenAIChatModelConnection",
        "vllm": f"{_CHAT}.vllm.VLLMChatModelConnection",
    },
    ResourceType.CHAT_MODEL: {
        "ollama": f"{_CHAT}.ollama.OllamaChatModelSetup",
        "anthropic": f"{_CHAT}.anthropic.AnthropicChatModelSetup",
        "llama_cpp": f"{_CHAT}.llama_cpp.LlamaCppChatModelSetup",
        "openai": f"{_CHAT}.openai.OpenAIChatModelSetup",
        "openai_compatible": f"{_CHAT}.openai.OpenAIChatModelSetup",
        "azure_openai": f"{_CHAT}.azure_openai.AzureOpenAIChatModelSetup",
        "vllm": f"{_CHAT}.vllm.VLLMChatModelSetup",
    },
    ResourceType.EMBEDDING_MODEL_CONNECTION: {},
    ResourceType.EMBEDDING_MODEL: {},
    ResourceType.VECTOR_STORE: {},
    ResourceType.MCP_SERVER: {"mcp": "emberflow.integrations.mcp.mcp_server.MCPServer"},
}

# Aliases of Flink Agents without a counterpart here.
_MODELS = frozenset({"ollama", "openai", "tongyi"})
ONLY_FLINK_AGENTS: dict[ResourceType, frozenset[str]] = {
    ResourceType.CHAT_MODEL_CONNECTION: frozenset({"tongyi"}),
    ResourceType.CHAT_MODEL: frozenset({"tongyi"}),
    ResourceType.EMBEDDING_MODEL_CONNECTION: _MODELS,
    ResourceType.EMBEDDING_MODEL: _MODELS,
    ResourceType.VECTOR_STORE: frozenset({"chroma", "mem0"}),
}


_instead: ContextVar[Mapping[str, str] | None] = ContextVar("_instead", default=None)


@contextlib.contextmanager
def classes_instead(paths: Mapping[str, str]) -> Generator[None]:
    """In this block files mean other classes: path -> path."""
    token = _instead.set(paths)
    try:
        yield
    finally:
        _instead.reset(token)


def condition_of(node: Node) -> WrittenCondition:
    """The event type for an alias; anything else, expressions included, as it is."""
    made = WrittenCondition(EVENT_ALIASES.get(node.value, node.value))
    made.written = Written(str(node.place), frozenset(EVENT_ALIASES))
    return made


def class_path(node: Node, kind: ResourceType, owner: str) -> str:
    """The path of the class for an alias, or the path itself."""
    written: str = node.value.strip()
    known = CLASS_ALIASES[kind]
    if written in known or "." in written:
        path = known.get(written, written.replace(":", "."))
        return (_instead.get() or {}).get(path, path)
    shown = kind.value.replace("_", " ")
    if written in ONLY_FLINK_AGENTS.get(kind, ()):
        raise wrong(
            node.place,
            f"{owner}: emberflow has no {shown} {written!r}",
            cause=f"it has: {', '.join(known) or 'none'}",
            way_out="give the path of a class of your own: clazz: package.module.MyClass",
        )
    raise wrong(
        node.place,
        f"{owner}: {written!r} is not an alias of a {shown}{did_you_mean(written, known)}",
        cause=f"the aliases: {', '.join(known) or 'none'}",
        way_out="a class of your own is given by its path: clazz: package.module.MyClass",
    )
