"""OpenAI, and every service with its chat interface: vLLM, Ollama's `/v1`, gateways. With the official client."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from emberflow.agents import Secret
from emberflow.agents.models.chat_connection import OnChunk
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.service_failure import cut_short, not_json, package_missing
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidArgument
from emberflow.integrations.chat_models.hosted_connection import TIMEOUT_S, HostedChatModelConnection
from emberflow.integrations.chat_models.openai_format import Pieces, Unreadable, read_answer, request_data
from emberflow.integrations.chat_models.settings import (
    UNCHECKED_SETTINGS,
    checked_settings,
    model_of,
    setting_types,
)

_OPTIONS = {
    "extra_headers": "headers",
    "extra_query": "params",
    "extra_body": "extra_json",
    "timeout": "timeout",
}
"""Settings that are not part of the body, and the client's names for them."""
_OURS = {
    "strict": bool,
    "extract_reasoning": bool,
    "additional_kwargs": dict,
    "model_of_azure_deployment": str,
}
_NOT_SETTINGS = frozenset({"self", "messages", "tools", "stream"})
# Structured output came with gpt-4o-2024-08-06; everything newer has it, except models that do not write text.
_NATIVE = re.compile(r"gpt-(4o|4\.\d|[5-9]|[1-9]\d)|o[1-9]")
_NOT_NATIVE = re.compile(r"-(audio|realtime|tts|transcribe)|^gpt-4o-2024-05-13|^o1-(mini|preview)")


class OpenAIChatModelConnection(HostedChatModelConnection):
    """A service with OpenAI's chat interface.

    Without an `api_key` it is read from the environment variable OPENAI_API_KEY of the worker. `base_url` (also called
    `api_base_url`) is the address of another service. `timeout` is in seconds; 0 means none. The client does not repeat
    failed calls unless `max_retries` says so: admission control and the retries of actions do. `ca_file` is a
    certificate authority to trust. `native_structured_output` says whether the service enforces an output schema; without
    it, that depends on the name of the model.
    """

    key_variable = "OPENAI_API_KEY"
    vendor = "OpenAI"

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
    ) -> None:
        if base_url and api_base_url and base_url != api_base_url:
            raise InvalidArgument("base_url and api_base_url are two names of one argument, and differ")
        super().__init__(
            api_key=api_key,
            base_url=base_url or api_base_url,
            timeout=timeout,
            max_retries=max_retries,
            default_headers=default_headers,
            ca_file=ca_file,
        )
        self.native_structured_output = native_structured_output

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        *,
        output_schema: OutputSchema | None = None,
        on_chunk: OnChunk | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer. `kwargs` are those of `chat.completions.create`, and `strict` (schemas of tools are enforced),
        `extract_reasoning` (what the model thinks between tags goes to `extra_args["reasoning"]`) and
        `additional_kwargs` (passed on unchecked). A refusal is `extra_args["refusal"]`. Raises ModelFailed."""
        settings = checked_settings(kwargs, _known(), self._service, way_out=UNCHECKED_SETTINGS)
        behind_deployment = str(settings.pop("model_of_azure_deployment", ""))
        reasoning = bool(settings.pop("extract_reasoning", False))
        strict = bool(settings.pop("strict", False))
        model = model_of(settings, self._service)
        request = {**request_data(messages, tools, output_schema, strict=strict), **settings}
        # Tokens are counted for the model, not for its deployment.
        counted = behind_deployment or model
        try:
            if on_chunk is None:
                return await self._whole(request, counted, reasoning)
            return await self._in_pieces(request, counted, reasoning, on_chunk)
        except Exception as error:
            failed = self._failed(error, model, messages, settings.get("timeout"))
        raise failed

    async def _whole(self, request: dict[str, Any], model: str, reasoning: bool) -> ChatMessage:
        import httpx2

        client: Any = self._clients.get()
        # The client's own way to make any request: `create` would spend more time on converting the parameters and the
        # answer to its types, and us on converting them back, than on everything else.
        options = {own: request.pop(name) for name, own in _OPTIONS.items() if name in request}
        response = await client.post(
            "/chat/completions", cast_to=httpx2.Response, body=request, options=options
        )
        try:
            answer = json.loads(response.content)
        except UnicodeDecodeError:
            raise Unreadable(not_json(response.text)) from None
        return read_answer(answer, model, reasoning=reasoning)

    async def _in_pieces(
        self, request: dict[str, Any], model: str, reasoning: bool, on_chunk: OnChunk
    ) -> ChatMessage:
        request.setdefault("stream_options", {"include_usage": True})
        pieces = Pieces(on_chunk)
        client: Any = self._clients.get()
        stream = await client.chat.completions.create(stream=True, **request)
        async with stream:
            async for piece in stream:
                pieces.add(piece.to_dict(mode="json", warnings=False))
        if not pieces.finish:
            raise cut_short(self._named(str(request["model"])))
        return pieces.message(model, reasoning=reasoning)

    @classmethod
    def known_settings(cls) -> Mapping[str, Any] | None:
        """Those of the client, if it is installed."""
        try:
            return _known()
        except ImportError:
            return None

    def supports_native_structured_output(self, model: str | None) -> bool:
        """As `native_structured_output` says; otherwise by the name of the model."""
        if self.native_structured_output is not None:
            return self.native_structured_output
        named = (model or "").rpartition("/")[2]
        return bool(_NATIVE.match(named)) and not _NOT_NATIVE.search(named)

    def _make_client(self) -> Any:
        return self._sdk().AsyncOpenAI(
            api_key=self._key, base_url=self.base_url or None, **self._client_settings()
        )

    def _sdk(self) -> Any:
        try:
            import openai
        except ImportError as error:
            raise package_missing("openai", "openai", error) from error
        return openai


class OpenAICompatibleChatModelConnection(OpenAIChatModelConnection):
    """A service with OpenAI's chat interface at a `base_url`, which must be given. The key of OpenAI in the environment is
    never sent to it; without an `api_key` it gets a placeholder."""

    def __init__(
        self, *, base_url: str | None = None, api_base_url: str | None = None, **kwargs: Any
    ) -> None:
        if not (base_url or api_base_url or "").strip():
            raise InvalidArgument(
                f"no address is configured for {type(self).__name__}",
                way_out="base_url='http://localhost:8000/v1'",
            )
        super().__init__(base_url=base_url, api_base_url=api_base_url, **kwargs)

    _no_key = "give the connection the service's key: api_key=Secret('…')"

    def _key_of_environment(self) -> str:
        return "EMPTY"

    @property
    def _default_origin(self) -> str:
        return ""

    @property
    def _secrets(self) -> list[str]:
        return [found for found in super()._secrets if found != "EMPTY"]


class OpenAIChatModelSetup(BaseChatModelSetup):
    """A model of OpenAI, or of a service like it; its settings are those of `chat.completions.create`."""

    def __init__(self, *, connection: Any, model: str = "gpt-4o-mini", **kwargs: Any) -> None:
        super().__init__(connection=connection, model=model, **kwargs)


@functools.cache
def _known() -> dict[str, Any]:
    from openai.resources.chat import AsyncCompletions

    names = frozenset(inspect.signature(AsyncCompletions.create).parameters) - _NOT_SETTINGS
    return {**setting_types(AsyncCompletions.create, names), **_OURS}
