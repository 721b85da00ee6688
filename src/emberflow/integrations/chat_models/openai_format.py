"""Messages, tools and answers in OpenAI's chat format, which many services and llama.cpp speak too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from emberflow.agents.models.chat_connection import ChatChunk, OnChunk, extract_reasoning
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidArgument, shorten
from emberflow.integrations.chat_models.strict_schema import strict_schema

Data = dict[str, Any]


class Unreadable(ValueError):
    """An answer that is not in the format; the message says what is wrong with it."""


class Reported(Exception):
    """An error in the body of an answer that has the status of a success."""

    def __init__(self, body: Data) -> None:
        super().__init__(shorten(body))
        self.body = body


def message_data(message: ChatMessage) -> Data:
    """A message as it is sent."""
    data: Data = {"role": message.role.value, "content": message.content}
    if message.images:
        parts: list[Data] = [{"type": "text", "text": message.content}] if message.content else []
        parts += [{"type": "image_url", "image_url": {"url": image.source}} for image in message.images]
        data["content"] = parts
    if message.tool_calls:
        data["tool_calls"] = [_call_data(call) for call in message.tool_calls]
        data["content"] = data["content"] or None
    if message.role is MessageRole.TOOL:
        data["tool_call_id"] = answered_call(message)
    return data


def answered_call(message: ChatMessage) -> str:
    """The id of the call that a tool's message answers."""
    found: Any = message.extra_args.get("external_id") or message.extra_args.get("tool_call_id")
    if not found:
        raise InvalidArgument(
            "a tool message lacks the id of its tool call",
            way_out='ChatMessage(role="tool", content=…, extra_args={"external_id": call["id"]})',
        )
    return str(found)


def _call_data(call: Data) -> Data:
    function: Data = call["function"]
    given: Any = function.get("arguments")
    arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False, default=str)
    own_id = call.get("original_id") or call.get("id") or ""
    return {
        "id": str(own_id),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def tool_data(tool: Tool, *, strict: bool = False) -> Data:
    """The description of a tool."""
    about = tool.metadata
    function: Data = {
        "name": about.name,
        "description": about.description,
        "parameters": about.get_parameters_dict(),
    }
    closed = strict_schema(function["parameters"]) if strict else None
    if closed is not None:
        function |= {"parameters": closed, "strict": True}
    return {"type": "function", "function": function}


def response_format(schema: OutputSchema) -> Data:
    """The setting that makes the answer fit the schema."""
    strict = strict_schema(schema.json_schema)
    described: Data = {"name": schema.name, "schema": schema.json_schema if strict is None else strict}
    if strict is not None:
        described["strict"] = True
    return {"type": "json_schema", "json_schema": described}


def request_data(
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool] | None,
    schema: OutputSchema | None,
    *,
    strict: bool,
) -> Data:
    """The parts of a request that are not settings."""
    data: Data = {"messages": [message_data(message) for message in messages]}
    if tools:
        data["tools"] = [tool_data(tool, strict=strict) for tool in tools]
    if schema is not None:
        data["response_format"] = response_format(schema)
    return data


# answers


def read_answer(data: Any, model: str, *, reasoning: bool) -> ChatMessage:
    """The message in an answer; `reasoning` separates it from the content. Raises Unreadable, and
    Reported if it is an error."""
    answer = _object(data, "the answer")
    choices: Any = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        check_reported(answer)
        raise Unreadable("it has no 'choices'")
    choice = _object(cast("list[Any]", choices)[0], "its choice")
    said = _object(choice.get("message"), "its message")
    return _message(said, answer.get("usage"), choice.get("finish_reason"), model, reasoning)


def check_reported(answer: Data) -> None:
    """Raises Reported if the answer is an error."""
    if answer.get("error"):
        raise Reported(answer)


def _message(said: Data, usage: Any, finish: Any, model: str, reasoning: bool) -> ChatMessage:
    content: Any = said.get("content") or ""
    if isinstance(content, list):
        # Parts, as some services answer.
        parts = [_object(part, "a part of its content") for part in cast("list[Any]", content)]
        content = "".join(str(part.get("text") or "") for part in parts)
    if not isinstance(content, str):
        raise Unreadable(f"its content is a {type(content).__name__}")
    extra = usage_args(usage, model)
    thought: Any = said.get("reasoning_content") or said.get("reasoning") or ""
    if reasoning and not thought:
        content, thought = extract_reasoning(content)
    if thought:
        extra["reasoning"] = str(thought)
    if said.get("refusal") is not None:
        extra["refusal"] = str(said["refusal"])
    if finish:
        extra["finish_reason"] = str(finish)
    calls: list[Data] = []
    for at, call in enumerate(_list(said.get("tool_calls"), "its tool calls")):
        calls.append(_read_call(_object(call, "a tool call"), at, {known["id"] for known in calls}))
    return ChatMessage(role=MessageRole.ASSISTANT, content=content, tool_calls=calls, extra_args=extra)


def _read_call(call: Data, index: int, taken: set[str]) -> Data:
    function = _object(call.get("function"), "the function of a tool call")
    own_id = str(call.get("id") or f"call-{index}")
    while own_id in taken:
        # Results are matched by ids, which some services leave out or repeat.
        own_id += f"-{index}"
    return {
        "id": own_id,
        "type": "function",
        "function": {
            "name": str(function.get("name") or ""),
            "arguments": read_arguments(function.get("arguments")),
        },
    }


def read_arguments(given: Any) -> Any:
    """The arguments of a tool call as a dictionary. Anything else is returned unchanged; the tool rejects it and the error is
    returned to the model."""
    if isinstance(given, str):
        try:
            found: Any = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return given
        return cast("Data", found) if isinstance(found, dict) else given
    return {} if given is None else given


def usage_args(usage: Any, model: str) -> Data:
    """The tokens of an answer, as `ChatMessage.usage` reads them, and under the names of Flink Agents."""
    if not isinstance(usage, dict):
        return {}
    found = cast("Data", usage)
    extra: Data = {"usage": {name: value for name, value in found.items() if value is not None}}
    sent = found.get("prompt_tokens", found.get("input_tokens"))
    answered = found.get("completion_tokens", found.get("output_tokens"))
    if model and sent is not None and answered is not None:
        extra |= {"model_name": model, "promptTokens": sent, "completionTokens": answered}
    return extra


def _object(value: Any, what: str) -> Data:
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is {'missing' if value is None else f'a {type(value).__name__}'}")
    return cast("Data", value)


def _list(value: Any, what: str) -> list[Any]:
    if value and not isinstance(value, list):
        raise Unreadable(f"{what} must be a list, got a {type(value).__name__}")
    return cast("list[Any]", value or [])


# answers in pieces


class Pieces:
    """Puts an answer together from the pieces of a stream."""

    def __init__(self, on_chunk: OnChunk) -> None:
        self._on_chunk = on_chunk
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, Data] = {}
        self._usage: Any = None
        self.finish: Any = None

    def add(self, piece: Any) -> None:
        """Raises Unreadable, and Reported."""
        found = _object(piece, "a piece of the answer")
        check_reported(found)
        self._usage = found.get("usage") or self._usage
        for choice in _list(found.get("choices"), "its choices"):
            chosen = _object(choice, "a choice")
            self.finish = chosen.get("finish_reason") or self.finish
            self._add_delta(_object(chosen.get("delta") or {}, "a piece"))

    def _add_delta(self, delta: Data) -> None:
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            text: Any = delta.get(name)
            if text:
                self._texts.setdefault(name, []).append(str(text))
        thought: Any = delta.get("reasoning_content") or delta.get("reasoning") or ""
        if delta.get("content") or thought:
            self._on_chunk(ChatChunk(text=delta.get("content") or "", reasoning=thought))
        for call in _list(delta.get("tool_calls"), "its tool calls"):
            part = _object(call, "a tool call")
            index: Any = part.get("index")
            place = index if isinstance(index, int) else len(self._calls)
            known = self._calls.setdefault(place, {"id": "", "function": {"name": "", "arguments": ""}})
            known["id"] = part.get("id") or known["id"]
            function = _object(part.get("function") or {}, "the function of a tool call")
            for name in ("name", "arguments"):
                known["function"][name] += str(function.get(name) or "")

    def message(self, model: str, *, reasoning: bool) -> ChatMessage:
        """The whole answer."""
        said: Data = {name: "".join(texts) for name, texts in self._texts.items()}
        said["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        return _message(said, self._usage, self.finish, model, reasoning)
