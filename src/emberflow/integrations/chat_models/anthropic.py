"""Anthropic's models, with the official client."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from emberflow.agents.models.chat_connection import ChatChunk, OnChunk, extract_reasoning
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.service_failure import cut_short, not_json, package_missing
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidArgument
from emberflow.integrations.chat_models.hosted_connection import HostedChatModelConnection
from emberflow.integrations.chat_models.openai_format import (
    Unreadable,
    answered_call,
    check_reported,
    usage_args,
)
from emberflow.integrations.chat_models.settings import (
    UNCHECKED_SETTINGS,
    checked_settings,
    model_of,
    setting_types,
)
from emberflow.integrations.chat_models.strict_schema import strict_schema

Data = dict[str, Any]

BLOCKS = "anthropic_content_blocks"
"""In `extra_args` of an answer with tool calls or thinking: its parts, which must be sent back unchanged."""

_NOT_SETTINGS = frozenset({"self", "messages", "tools", "system", "stream"})
_OURS = {"extract_reasoning": bool, "additional_kwargs": dict, "json_prefill": bool}
# Accepted by the service, for older models; the client has no parameters for them.
_IN_BODY = {"temperature": float, "top_p": float, "top_k": int}
_VERSION = re.compile(r"claude-(?:[a-z]+)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_FIRST_NATIVE = (4, 5)
MAX_TOKENS = 4096


class AnthropicChatModelConnection(HostedChatModelConnection):
    """Anthropic's interface. Without an `api_key` it is read from the environment variable ANTHROPIC_API_KEY of the worker.
    The other arguments are those of `OpenAIChatModelConnection`."""

    key_variable = "ANTHROPIC_API_KEY"
    vendor = "Anthropic"

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool] | None = None,
        *,
        output_schema: OutputSchema | None = None,
        on_chunk: OnChunk | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer. `kwargs` are those of `messages.create` (`max_tokens` is 4096 unless given), and `temperature`, `top_p`,
        `top_k`, `json_prefill` (the answer starts with `{`, for older models) and `additional_kwargs` (passed on
        unchecked). A refusal is `extra_args["refusal"]`. Raises ModelFailed."""
        settings = checked_settings(kwargs, _known(), self._service, way_out=UNCHECKED_SETTINGS)
        model = model_of(settings, self._service)
        reasoning = bool(settings.pop("extract_reasoning", False))
        prefill = bool(settings.pop("json_prefill", False))
        request = request_data(messages, tools, output_schema, settings)
        prefill = prefill and not tools and "output_config" not in request and not _is_native(model)
        if prefill:
            request["messages"].append({"role": "assistant", "content": "{"})
        try:
            data = await self._asked(request, model, on_chunk)
            return _answer(data, model, start="{" if prefill else "", reasoning=reasoning)
        except Exception as error:
            failed = self._failed(error, model, messages, settings.get("timeout"))
        raise failed

    async def _asked(self, request: Data, model: str, on_chunk: OnChunk | None) -> Data:
        client: Any = self._clients.get()
        if on_chunk is None:
            answer = await client.messages.create(**request)
        else:
            ended = False
            async with client.messages.stream(**request) as stream:
                async for event in stream:
                    _report(event, on_chunk)
                    ended = ended or event.type == "message_stop"
                if not ended:
                    raise cut_short(self._named(model))
                answer = await stream.get_final_message()
        if not hasattr(answer, "to_dict"):
            raise Unreadable(not_json(str(answer)))
        return answer.to_dict(mode="json", warnings=False)

    @classmethod
    def known_settings(cls) -> Mapping[str, Any] | None:
        """Those of the client, if it is installed."""
        try:
            return _known()
        except ImportError:
            return None

    def supports_native_structured_output(self, model: str | None) -> bool:
        """Models since Claude 4.5."""
        return _is_native(model or "")

    def _make_client(self) -> Any:
        return self._sdk().AsyncAnthropic(
            api_key=self._key, base_url=self.base_url or None, **self._client_settings()
        )

    def _sdk(self) -> Any:
        try:
            import anthropic
        except ImportError as error:
            raise package_missing("anthropic", "anthropic", error) from error
        return anthropic


class AnthropicChatModelSetup(BaseChatModelSetup):
    """A model of Anthropic; its settings are those of `messages.create`."""

    def __init__(self, *, connection: Any, model: str, max_tokens: int = MAX_TOKENS, **kwargs: Any) -> None:
        super().__init__(connection=connection, model=model, max_tokens=max_tokens, **kwargs)


def _is_native(model: str) -> bool:
    if "mythos-preview" in model:
        return True
    found = _VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _FIRST_NATIVE


@functools.cache
def _known() -> dict[str, Any]:
    from anthropic.resources import AsyncMessages

    names = frozenset(inspect.signature(AsyncMessages.create).parameters) - _NOT_SETTINGS
    return {**setting_types(AsyncMessages.create, names), **_OURS, **_IN_BODY}


# requests


def request_data(
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool] | None,
    schema: OutputSchema | None,
    settings: Data,
) -> Data:
    """A request in Anthropic's format: instructions apart, and roles in turn."""
    given = {"max_tokens": MAX_TOKENS, **settings}
    request: Data = {name: value for name, value in given.items() if name not in _IN_BODY}
    in_body = {name: value for name, value in given.items() if name in _IN_BODY}
    if in_body:
        request["extra_body"] = {**in_body, **(request.get("extra_body") or {})}
    system = [message.content for message in messages if message.role is MessageRole.SYSTEM]
    if system:
        request["system"] = [{"type": "text", "text": text} for text in system if text]
    request["messages"] = _turns(messages)
    if tools:
        request["tools"] = [
            {
                "name": tool.metadata.name,
                "description": tool.metadata.description,
                "input_schema": tool.metadata.get_parameters_dict(),
            }
            for tool in tools
        ]
    if schema is not None and "output_config" not in request:
        request["output_config"] = {"format": {"type": "json_schema", "schema": _schema(schema)}}
    return request


def _schema(schema: OutputSchema) -> Data:
    from anthropic import transform_schema

    if strict_schema(schema.json_schema) is None:
        raise InvalidArgument(
            f"{schema.name} is not supported by Anthropic's structured output: objects must declare all properties",
            way_out="structured_output_strategy='prompt', or a type without free property names",
        )
    return transform_schema(schema.json_schema)


def _turns(messages: Sequence[ChatMessage]) -> list[Data]:
    """All results of the tool calls of one answer belong into one message."""
    turns: list[Data] = []
    for message in messages:
        if message.role is MessageRole.SYSTEM:
            continue
        role = "assistant" if message.role is MessageRole.ASSISTANT else "user"
        content = _parts(message)
        if not content:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        else:
            turns.append({"role": role, "content": content})
    return turns


def _parts(message: ChatMessage) -> list[Data]:
    kept: Any = message.extra_args.get(BLOCKS)
    if message.role is MessageRole.ASSISTANT and kept:
        return list(cast("list[Data]", kept))
    text: list[Data] = [{"type": "text", "text": message.content}] if message.content else []
    images = [{"type": "image", "source": _image_source(image)} for image in message.images]
    if message.role is MessageRole.TOOL:
        result: Data = {"type": "tool_result", "tool_use_id": answered_call(message)}
        return [{**result, "content": [*text, *images]} if text or images else result]
    uses: list[Data] = [
        {
            "type": "tool_use",
            "id": str(call.get("original_id") or call["id"]),
            "name": call["function"]["name"],
            "input": _dictionary(call["function"].get("arguments")),
        }
        for call in message.tool_calls
    ]
    return [*text, *images, *uses]


def _dictionary(arguments: Any) -> Data:
    return cast("Data", arguments) if isinstance(arguments, dict) else {}


def _image_source(image: Any) -> Data:
    if image.url:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


# answers


def _report(event: Any, on_chunk: OnChunk) -> None:
    if event.type != "content_block_delta":
        return
    if event.delta.type == "text_delta":
        on_chunk(ChatChunk(text=event.delta.text))
    elif event.delta.type == "thinking_delta":
        on_chunk(ChatChunk(reasoning=event.delta.thinking))


def _answer(data: Data, model: str, *, start: str, reasoning: bool) -> ChatMessage:
    """Raises Unreadable, and Reported if it is an error."""
    check_reported(data)
    blocks: Any = data.get("content")
    if data.get("type") != "message" or not isinstance(blocks, list):
        raise Unreadable("the response is not a message with content")
    parts = [cast("Data", block) for block in cast("list[Any]", blocks) if isinstance(block, dict)]
    text = start + "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")
    thought = "\n\n".join(str(part.get("thinking") or "") for part in parts if part.get("type") == "thinking")
    if reasoning and not thought:
        text, found = extract_reasoning(text)
        thought = found or ""
    extra = usage_args(data.get("usage"), model)
    if thought:
        extra["reasoning"] = thought
    stop = data.get("stop_reason")
    if stop:
        extra["finish_reason"] = str(stop)
    if stop == "refusal":
        extra["refusal"] = text or "the model refused to answer"
    calls: list[Data] = [
        {
            "id": str(part.get("id") or ""),
            "type": "function",
            "function": {"name": str(part.get("name") or ""), "arguments": part.get("input") or {}},
        }
        for part in parts
        if part.get("type") == "tool_use"
    ]
    if calls or thought:
        extra[BLOCKS] = parts
    return ChatMessage(role=MessageRole.ASSISTANT, content=text, tool_calls=calls, extra_args=extra)
