"""`ResourceName`: the paths of Flink Agents' classes, for descriptors. The import hook resolves them to emberflow's."""

from __future__ import annotations

from typing import Any

from emberflow.errors import FlinkAgentsOnly

_INTEGRATIONS = "flink_agents.integrations"
_MODELS = f"{_INTEGRATIONS}.chat_models"
_EMBEDDINGS = f"{_INTEGRATIONS}.embedding_models"
_STORES = f"{_INTEGRATIONS}.vector_stores"


class _NoJava(type):
    """Fails when a Java class is named."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise FlinkAgentsOnly(
            f"emberflow has no Java resources (ResourceName.….Java.{name})",
            way_out="use the Python class: the same name without .Java",
        )


class _Java(metaclass=_NoJava):
    """Names of Java classes, which emberflow cannot run."""


class ResourceName:
    """Paths of resource classes: `ResourceDescriptor(clazz=ResourceName.ChatModel.OLLAMA_SETUP, …)`."""

    class ChatModel:
        """Chat models."""

        ANTHROPIC_CONNECTION = f"{_MODELS}.anthropic.anthropic_chat_model.AnthropicChatModelConnection"
        ANTHROPIC_SETUP = f"{_MODELS}.anthropic.anthropic_chat_model.AnthropicChatModelSetup"
        AZURE_OPENAI_CONNECTION = f"{_MODELS}.azure.azure_openai_chat_model.AzureOpenAIChatModelConnection"
        AZURE_OPENAI_SETUP = f"{_MODELS}.azure.azure_openai_chat_model.AzureOpenAIChatModelSetup"
        OLLAMA_CONNECTION = f"{_MODELS}.ollama_chat_model.OllamaChatModelConnection"
        OLLAMA_SETUP = f"{_MODELS}.ollama_chat_model.OllamaChatModelSetup"
        OPENAI_COMPLETIONS_CONNECTION = f"{_MODELS}.openai.openai_chat_model.OpenAIChatModelConnection"
        OPENAI_COMPLETIONS_SETUP = f"{_MODELS}.openai.openai_chat_model.OpenAIChatModelSetup"
        TONGYI_CONNECTION = f"{_MODELS}.tongyi_chat_model.TongyiChatModelConnection"
        TONGYI_SETUP = f"{_MODELS}.tongyi_chat_model.TongyiChatModelSetup"
        VLLM_CONNECTION = f"{_MODELS}.vllm.vllm_chat_model.VLLMChatModelConnection"
        VLLM_SETUP = f"{_MODELS}.vllm.vllm_chat_model.VLLMChatModelSetup"
        JAVA_WRAPPER_CONNECTION = "flink_agents.api.chat_models.java_chat_model.JavaChatModelConnection"
        JAVA_WRAPPER_SETUP = "flink_agents.api.chat_models.java_chat_model.JavaChatModelSetup"
        Java = _Java

    class EmbeddingModel:
        """Embedding models; descriptors of them are rejected."""

        OLLAMA_CONNECTION = f"{_EMBEDDINGS}.local.ollama_embedding_model.OllamaEmbeddingModelConnection"
        OLLAMA_SETUP = f"{_EMBEDDINGS}.local.ollama_embedding_model.OllamaEmbeddingModelSetup"
        OPENAI_CONNECTION = f"{_EMBEDDINGS}.openai_embedding_model.OpenAIEmbeddingModelConnection"
        OPENAI_SETUP = f"{_EMBEDDINGS}.openai_embedding_model.OpenAIEmbeddingModelSetup"
        TONGYI_CONNECTION = f"{_EMBEDDINGS}.tongyi_embedding_model.TongyiEmbeddingModelConnection"
        TONGYI_SETUP = f"{_EMBEDDINGS}.tongyi_embedding_model.TongyiEmbeddingModelSetup"
        JAVA_WRAPPER_CONNECTION = (
            "flink_agents.api.embedding_models.java_embedding_model.JavaEmbeddingModelConnection"
        )
        JAVA_WRAPPER_SETUP = "flink_agents.api.embedding_models.java_embedding_model.JavaEmbeddingModelSetup"
        Java = _Java

    class VectorStore:
        """Vector stores; descriptors of them are rejected."""

        CHROMA_VECTOR_STORE = f"{_STORES}.chroma.chroma_vector_store.ChromaVectorStore"
        MEM0_VECTOR_STORE = f"{_STORES}.mem0.mem0_vector_store.Mem0VectorStore"
        JAVA_WRAPPER_VECTOR_STORE = "flink_agents.api.vector_stores.java_vector_store.JavaVectorStore"
        JAVA_WRAPPER_COLLECTION_MANAGEABLE_VECTOR_STORE = (
            "flink_agents.api.vector_stores.java_vector_store.JavaCollectionManageableVectorStore"
        )
        Java = _Java

    MCP_SERVER = f"{_INTEGRATIONS}.mcp.mcp.MCPServer"
