"""`ChatModel.openai("…")` and its siblings: the descriptor of a chat model, with its connection inside.

Nothing of a vendor is imported here: the classes are named, and imported by the worker that creates them.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.plan.agents.resources import ResourceDescriptor, Secret

_LIMITS = (
    "max_concurrent",
    "requests_per_minute",
    "tokens_per_minute",
    "throttle_retries",
    "max_waiting",
)
_CLIENT = ("timeout", "max_retries", "default_headers", "ca_file")
_OPENAI = (*_CLIENT, "native_structured_output")


class ChatModel:
    """Chat models in one line, for `agent.add_resource("judge", ResourceType.CHAT_MODEL, ChatModel.openai("gpt-…"))`.

    Each returns a `ResourceDescriptor`. Arguments of the connection (timeout, limits such as `max_concurrent` and
    `requests_per_minute`, …) and of the setup (prompt, tools, temperature, …) are given together. Models with the same
    arguments of the connection share it within an agent.

    ```python
    from emberflow.agents import ChatModel, Secret

    judge = ChatModel.openai("gpt-5-mini", api_key=Secret("OPENAI_API_KEY"), max_concurrent=50)

    assert judge.arguments["model"] == "gpt-5-mini"
    ```
    """

    @staticmethod
    def openai(
        model: str, *, api_key: Secret | None = None, base_url: str | None = None, **kwargs: Any
    ) -> ResourceDescriptor:
        """A model of OpenAI; the key is by default the worker's OPENAI_API_KEY."""
        own = {"api_key": api_key or Secret("OPENAI_API_KEY"), "base_url": base_url}
        return _described("openai", "OpenAI", model, own, kwargs, _OPENAI)

    @staticmethod
    def azure(
        deployment: str, *, azure_endpoint: str, api_key: Secret | None = None, **kwargs: Any
    ) -> ResourceDescriptor:
        """A deployment in Azure OpenAI; the key is by default the worker's AZURE_OPENAI_API_KEY.
        `model_of_azure_deployment` names the model behind it."""
        own = {"api_key": api_key or Secret("AZURE_OPENAI_API_KEY"), "azure_endpoint": azure_endpoint}
        return _described("azure_openai", "AzureOpenAI", deployment, own, kwargs, (*_OPENAI, "api_version"))

    @staticmethod
    def openai_compatible(
        model: str, *, base_url: str, api_key: Secret | None = None, **kwargs: Any
    ) -> ResourceDescriptor:
        """A model of any service with OpenAI's chat interface. It gets a key only if one is given."""
        own = {"api_key": api_key, "base_url": base_url}
        return _described("openai", "OpenAICompatible", model, own, kwargs, _OPENAI, setup="OpenAI")

    @staticmethod
    def vllm(
        model: str, *, base_url: str | None = None, api_key: Secret | None = None, **kwargs: Any
    ) -> ResourceDescriptor:
        """A model of a vLLM server, by default at http://localhost:8000/v1."""
        return _described("vllm", "VLLM", model, {"api_key": api_key, "base_url": base_url}, kwargs, _OPENAI)

    @staticmethod
    def anthropic(
        model: str, *, api_key: Secret | None = None, base_url: str | None = None, **kwargs: Any
    ) -> ResourceDescriptor:
        """A model of Anthropic; the key is by default the worker's ANTHROPIC_API_KEY."""
        own = {"api_key": api_key or Secret("ANTHROPIC_API_KEY"), "base_url": base_url}
        return _described("anthropic", "Anthropic", model, own, kwargs, _CLIENT)

    @staticmethod
    def ollama(model: str, *, base_url: str | None = None, **kwargs: Any) -> ResourceDescriptor:
        """A model of an Ollama server, by default at http://localhost:11434."""
        names = ("request_timeout", "default_headers", "ca_file")
        return _described("ollama", "Ollama", model, {"base_url": base_url}, kwargs, names)

    @staticmethod
    def local(path: str | os.PathLike[str], **kwargs: Any) -> ResourceDescriptor:
        """A GGUF file, run by llama.cpp inside each worker process. The file must exist on every worker."""
        names = ("threads", "context_tokens", "parallel", "gpu_layers", "mmproj")
        return _described("llama_cpp", "LlamaCpp", None, {"path": os.fspath(path)}, kwargs, names)


def _described(
    module: str,
    vendor: str,
    model: str | None,
    own: dict[str, Any],
    kwargs: dict[str, Any],
    connection_names: tuple[str, ...],
    *,
    setup: str = "",
) -> ResourceDescriptor:
    for name in kwargs:
        near = get_close_matches(name, (*connection_names, *_LIMITS), 1, 0.85)
        if near and name not in (*connection_names, *_LIMITS):
            raise InvalidArgument(
                f"the connection of a chat model has no {name!r}; did you mean {near[0]!r}?"
            )
    target = f"emberflow.integrations.chat_models.{module}"
    arguments = {name: value for name, value in own.items() if value is not None}
    arguments |= {name: kwargs.pop(name) for name in (*connection_names, *_LIMITS) if name in kwargs}
    connection = ResourceDescriptor(
        target_module=target, target_clazz=f"{vendor}ChatModelConnection", arguments=arguments
    )
    named = {} if model is None else {"model": model}
    return ResourceDescriptor(
        target_module=target,
        target_clazz=f"{setup or vendor}ChatModelSetup",
        arguments={"connection": connection, **named, **kwargs},
    )
