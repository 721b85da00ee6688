"""The vendors' chat models as Flink Agents' programs use them: with the settings that its classes have by default.

`emberflow.integrations.chat_models` leaves them to the services. A setting that is given as None is left to the service
here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emberflow.agents import Secret
from emberflow.integrations.chat_models import anthropic, ollama, openai, vllm
from emberflow.integrations.chat_models.hosted_connection import TIMEOUT_S


class OllamaChatModelSetup(ollama.OllamaChatModelSetup):
    """A model that the server has pulled."""

    def __init__(
        self,
        connection: Any,
        model: str,
        temperature: float | None = 0.75,
        num_ctx: int | None = 2048,
        *,
        think: bool | str | None = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            connection=connection,
            model=model,
            temperature=temperature,
            num_ctx=num_ctx,
            think=think,
            **kwargs,
        )


class OpenAIChatModelConnection(openai.OpenAIChatModelConnection):
    """A service with OpenAI's chat interface. Its client is always reused, whatever `reuse_client` says. `request_timeout`, the
    name of the argument in Ollama's connection, is another name for `timeout`; Flink Agents ignores it here."""

    # Written out: the names of arguments are checked against the signature.
    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        api_base_url: str | None = None,
        timeout: float | None = TIMEOUT_S,
        max_retries: int = 0,
        default_headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        native_structured_output: bool | None = None,
        reuse_client: bool = True,
        request_timeout: float | None = None,
    ) -> None:
        super().__init__(
            api_key=api_key,
            base_url=base_url,
            api_base_url=api_base_url,
            timeout=timeout if request_timeout is None else request_timeout,
            max_retries=max_retries,
            default_headers=default_headers,
            ca_file=ca_file,
            native_structured_output=native_structured_output,
        )


class OpenAIChatModelSetup(openai.OpenAIChatModelSetup):
    """A model of OpenAI, or of a service like it."""

    def __init__(
        self, *, connection: Any, model: str = "gpt-4o-mini", temperature: float | None = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(connection=connection, model=model, temperature=temperature, **kwargs)


class VLLMChatModelConnection(vllm.VLLMChatModelConnection):
    """A server started with `vllm serve`. Its client is always reused, whatever `reuse_client` says."""

    def __init__(self, *, reuse_client: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)


class VLLMChatModelSetup(vllm.VLLMChatModelSetup):
    """A model that the server was started with."""

    def __init__(
        self, *, connection: Any, model: str = "", temperature: float | None = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(connection=connection, model=model, temperature=temperature, **kwargs)


class AnthropicChatModelSetup(anthropic.AnthropicChatModelSetup):
    """A model of Anthropic."""

    def __init__(
        self,
        connection: Any,
        model: str = "claude-sonnet-4-20250514",
        max_tokens: int = 1024,
        temperature: float | None = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            connection=connection, model=model, max_tokens=max_tokens, temperature=temperature, **kwargs
        )


PATHS: dict[str, str] = {
    f"{here.__module__}.{here.__qualname__}": f"{there.__module__}.{there.__qualname__}"
    for there in (
        OllamaChatModelSetup,
        OpenAIChatModelConnection,
        OpenAIChatModelSetup,
        VLLMChatModelConnection,
        VLLMChatModelSetup,
        AnthropicChatModelSetup,
    )
    for here in there.__bases__
}
"""The class of `emberflow.integrations.chat_models` -> the one of this module."""
