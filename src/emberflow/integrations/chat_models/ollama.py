"""Ollama's own interface, with the official client. Its `/v1` address is a service like OpenAI's (`openai.py`)."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from emberflow.agents.models.chat_connection import (
    BaseChatModelConnection,
    ChatChunk,
    OnChunk,
    extract_reasoning,
    with_instructions,
)
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.service_failure import (
    address_of,
    cut_short,
    failure_of,
    header_secrets,
    key_header,
    package_missing,
    unreadable,
)
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidArgument
from emberflow.integrations.chat_models.http_transport import transport_settings, trusting
from emberflow.integrations.chat_models.loop_clients import LoopClients
from emberflow.integrations.chat_models.ollama_tools import ollama_tool
from emberflow.integrations.chat_models.openai_format import Unreadable, usage_args
from emberflow.integrations.chat_models.settings import checked_settings, model_of, plain_type

Data = dict[str, Any]

_OF_THE_CALL = {
    "model": str,
    "format": str | dict[str, Any],
    "keep_alive": float | str,
    "think": bool | str,
    "logprobs": bool,
    "top_logprobs": int,
}
_OURS = {"extract_reasoning": bool, "additional_kwargs": dict, "request_timeout": float}
_NO_KEY = "set OLLAMA_API_KEY where the job runs"
TIMEOUT_S = 600.0


class OllamaChatModelConnection(BaseChatModelConnection):
    """A server of Ollama, by default at OLLAMA_HOST or on this machine. `request_timeout` is in seconds; 0 or None means none."""

    def __init__(
        self,
        base_url: str | None = None,
        request_timeout: float | None = TIMEOUT_S,
        *,
        default_headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
    ) -> None:
        self.base_url = base_url or os.environ.get("OLLAMA_HOST") or "http://localhost:11434"
        self.request_timeout = request_timeout
        self.default_headers = dict(default_headers or {})
        self.ca_file = ca_file
        self._clients = self._new_clients()

    def _new_clients(self) -> LoopClients[Any]:
        return LoopClients(self._make_client, lambda client: client.close())

    def open(self) -> None:
        """Raises PackageMissing, or ResourceFailed if the CA file cannot be read, before the first call."""
        _sdk()
        if self.ca_file:
            trusting(self.ca_file)

    def close(self) -> None:
        """Closes the connections."""
        self._clients.close()

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        *,
        output_schema: OutputSchema | None = None,
        on_chunk: OnChunk | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer. `kwargs` are `keep_alive`, `think`, `format` and the options of the model (`temperature`, `num_ctx`, …);
        `additional_kwargs` are options that are passed on unchecked. `extract_reasoning` moves what the model thinks
        between tags to `extra_args["reasoning"]`. Raises ModelFailed."""
        settings = checked_settings(kwargs, _known(), "Ollama", way_out="additional_kwargs={…}")
        model = model_of(settings, "Ollama")
        del settings["model"]
        reasoning = bool(settings.pop("extract_reasoning", False))
        settings.pop("request_timeout", None)
        request = {name: settings.pop(name) for name in list(settings) if name in _OF_THE_CALL}
        if output_schema is not None and tools:
            # A model that must write JSON cannot call tools.
            messages = with_instructions(messages, output_schema)
        elif output_schema is not None:
            request["format"] = output_schema.json_schema
        request |= {
            "model": model,
            "messages": [_message_data(message) for message in messages],
            "tools": [ollama_tool(tool) for tool in tools or ()] or None,
            "options": settings or None,
        }
        named = f"the model {model!r} of Ollama at {address_of(self.base_url)}"
        try:
            data = await (
                self._whole(request) if on_chunk is None else self._in_pieces(request, named, on_chunk)
            )
            return _answer(data, model, reasoning, _count_of_calls(messages))
        except Unreadable as problem:
            failed = unreadable(named, str(problem))
        except Exception as error:
            failed = failure_of(
                error,
                named,
                secrets=[*_secrets(), *header_secrets(self.default_headers)],
                key_from=key_header(self.default_headers) or _key_from(),
                no_key=_NO_KEY,
                timeout_s=self.request_timeout,
                messages=messages,
            )
        raise failed

    async def _whole(self, request: Data) -> Data:
        client: Any = self._clients.get()
        return (await client.chat(**request)).model_dump(exclude_none=True)

    async def _in_pieces(self, request: Data, named: str, on_chunk: OnChunk) -> Data:
        client: Any = self._clients.get()
        said: Data = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
        last: Data = {}
        async for piece in await client.chat(stream=True, **request):
            last = piece.model_dump(exclude_none=True)
            part: Data = last.get("message") or {}
            text, thought = part.get("content") or "", part.get("thinking") or ""
            said["content"] += text
            said["thinking"] += thought
            said["tool_calls"] += part.get("tool_calls") or []
            if text or thought:
                on_chunk(ChatChunk(text=text, reasoning=thought))
        if not last.get("done"):
            raise cut_short(named)
        return {**last, "message": said}

    @classmethod
    def known_settings(cls) -> Mapping[str, Any] | None:
        """Those of the client, if it is installed."""
        try:
            return _known()
        except ImportError:
            return None

    def supports_native_structured_output(self, model: str | None) -> bool:
        """Every model: the server restricts what it may write."""
        return True

    def _make_client(self) -> Any:
        import httpx

        return _sdk().AsyncClient(
            host=self.base_url,
            timeout=self.request_timeout or None,
            headers=self.default_headers,
            **transport_settings(httpx, self.ca_file),
        )

    def __repr__(self) -> str:
        return f"OllamaChatModelConnection({address_of(self.base_url)})"

    def __getstate__(self) -> Data:
        kept = {**self.__dict__}
        for name in ("_clients", "resource_context"):
            kept.pop(name, None)
        return kept

    def __setstate__(self, state: Data) -> None:
        vars(self).update(state)
        self._clients = self._new_clients()


class OllamaChatModelSetup(BaseChatModelSetup):
    """A model that the server has pulled."""

    def __init__(
        self, *, connection: Any, model: str, extract_reasoning: bool | None = True, **kwargs: Any
    ) -> None:
        super().__init__(connection=connection, model=model, extract_reasoning=extract_reasoning, **kwargs)


def _sdk() -> Any:
    try:
        import ollama
    except ImportError as error:
        raise package_missing("ollama", "ollama", error) from error
    return ollama


@functools.cache
def _known() -> dict[str, Any]:
    from ollama import Options

    options = {name: plain_type(field.annotation) for name, field in Options.model_fields.items()}
    return {**options, **_OF_THE_CALL, **_OURS}


def _secrets() -> list[str]:
    key = os.environ.get("OLLAMA_API_KEY", "")
    return [key] if key else []


def _key_from() -> str:
    return "the variable OLLAMA_API_KEY" if _secrets() else ""


def _message_data(message: ChatMessage) -> Data:
    data: Data = {"role": message.role.value, "content": message.content}
    if any(image.url for image in message.images):
        raise InvalidArgument(
            "Ollama does not fetch images from addresses", way_out="Image.from_file(…), or Image(data=…)"
        )
    if message.images:
        data["images"] = [image.data for image in message.images]
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "function": {
                    "name": call["function"]["name"],
                    "arguments": given
                    if isinstance(given := call["function"].get("arguments"), dict)
                    else {},
                }
            }
            for call in message.tool_calls
        ]
    if message.role is MessageRole.TOOL and message.extra_args.get("name"):
        data["tool_name"] = str(message.extra_args["name"])
    return data


def _count_of_calls(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.tool_calls) for message in messages)


def _answer(data: Data, model: str, reasoning: bool, calls_before: int) -> ChatMessage:
    said: Any = data.get("message")
    if not isinstance(said, dict):
        raise Unreadable("it has no message")
    message: Data = {**said}
    content, thought = str(message.get("content") or ""), str(message.get("thinking") or "")
    if reasoning and not thought:
        content, found = extract_reasoning(content)
        thought = found or ""
    usage = {"prompt_tokens": data.get("prompt_eval_count"), "completion_tokens": data.get("eval_count")}
    extra = usage_args(usage, model) if None not in usage.values() else {}
    if thought:
        extra["reasoning"] = thought
    if data.get("done_reason"):
        extra["finish_reason"] = str(data["done_reason"])
    calls = [
        {
            # Ollama's calls have no ids; these are unique within the conversation, and the same when it is repeated.
            "id": f"call-{calls_before + index}",
            "type": "function",
            "function": {
                "name": call["function"]["name"],
                "arguments": call["function"].get("arguments") or {},
            },
        }
        for index, call in enumerate(message.get("tool_calls") or ())
    ]
    return ChatMessage(role=MessageRole.ASSISTANT, content=content, tool_calls=calls, extra_args=extra)
