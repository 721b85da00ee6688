"""Connections to chat models: what a vendor implements, and how their answers arrive in pieces."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from emberflow.agents.models.chat_message import ChatMessage, reply_of
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.reply_end import with_refusal
from emberflow.agents.models.system_messages import with_system_message
from emberflow.agents.tools.calling import call_function
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import NotSupported
from emberflow.operators.agents.resources.resource_views import unwrapped
from emberflow.plan.agents.resources import Resource, ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatChunk:
    """A piece of an answer that arrives in pieces."""

    text: str = ""
    reasoning: str = ""
    """What a reasoning model thinks before it answers, if the service shows it."""
    message: ChatMessage | None = None
    """In the last piece: the whole answer, with tool calls and usage."""


OnChunk = Callable[[ChatChunk], None]


class BaseChatModelConnection(Resource, ABC):
    """How to reach a model service: address, key, timeouts.

    A descriptor may limit its load: `max_concurrent`, `requests_per_minute`, `tokens_per_minute`, for all processes of a
    job together. An error with the status 429 or 503 makes all of them pause (`docs/admission.md`).

    One connection serves all keys of a process: `chat` is called concurrently on one event loop. An implementation must
    not share state between calls. A coroutine must not block the loop; a plain function is called on a thread.
    """

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.CHAT_MODEL_CONNECTION`."""
        return ResourceType.CHAT_MODEL_CONNECTION

    @abstractmethod
    def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> Any:
        """The model's answer, a ChatMessage or its content as a string: `async def` or plain. `kwargs` are settings of the service (model, temperature,
        …). Raises the errors of the service's client: the caller decides whether a call is retried.

        Only an implementation that names them as parameters receives `output_schema` (an `OutputSchema` or None, to be
        translated for the service), `on_chunk` (a function to be called with each `ChatChunk`) and `idempotency_key`."""

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> AsyncIterator[ChatChunk]:
        """The answer in pieces, the last with the whole message; one piece if the service cannot do it."""
        return streamed(functools.partial(call, self, messages, tools, **kwargs))

    def supports_native_structured_output(self, model: str | None) -> bool:
        """Whether the service itself can make this model's answer fit an `output_schema`."""
        return False

    def _reject_unsupported_output_schema(self, output_schema: OutputSchema | None) -> None:
        """For implementations without native structured output: raises NotSupported if there is a schema."""
        if output_schema is not None:
            raise NotSupported(
                f"{type(self).__name__} has no native structured output",
                way_out="structured_output_strategy='prompt', or pass no output_schema",
            )

    @classmethod
    def known_settings(cls) -> Mapping[str, Any] | None:
        """The settings that a call accepts, with their types (`Any` if it is not known); None if they are not known, as without
        the service's client. Setups are checked against them when their agent is applied, or their file loaded."""
        return None

    @staticmethod
    def _extract_reasoning(
        content: str, patterns: Sequence[re.Pattern[str]] | None = None
    ) -> tuple[str, str | None]:
        return extract_reasoning(content, patterns)


def takes(connection: Any, name: str) -> bool:
    """Whether the connection's `chat` names this parameter."""
    return name in _named_parameters(unwrapped(connection).__class__.chat)


@functools.lru_cache(maxsize=256)
def _named_parameters(function: Any) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


_threads = ThreadPoolExecutor(64, thread_name_prefix="emberflow-models")
"""For connections with a plain `chat`."""


async def call(
    connection: Any,
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool] | None,
    on_chunk: OnChunk | None = None,
    **settings: Any,
) -> ChatMessage:
    """Calls a connection of either kind. A refusal has its text as content."""
    if on_chunk is not None and takes(connection, "on_chunk"):
        settings["on_chunk"] = on_chunk
    chat: Any = connection.chat
    if inspect.iscoroutinefunction(chat):
        answer = await chat(messages, tools=tools, **settings)
    else:

        async def make() -> Any:
            called = functools.partial(chat, messages, tools=tools, **settings)
            context = contextvars.copy_context()
            answer = await asyncio.get_running_loop().run_in_executor(_threads, context.run, called)
            return await answer if inspect.isawaitable(answer) else answer

        admit: Any = getattr(chat, "admit", None)
        answer = await (make() if admit is None else admit(make, messages))
    reply = with_refusal(reply_of(unwrapped(connection), answer))
    if on_chunk is not None:
        whole = "" if "on_chunk" in settings else reply.content
        on_chunk(ChatChunk(text=whole, message=reply))
    return reply


async def call_setup(
    setup: Any,
    messages: Sequence[ChatMessage],
    prompt_args: Mapping[str, Any] | None,
    schema: OutputSchema | None,
    on_chunk: OnChunk | None,
    settings: Mapping[str, Any],
) -> ChatMessage:
    """Calls a setup, whose `chat` may be the user's own: a plain function, or one without `output_schema` and `on_chunk`."""
    given = dict(settings)
    if schema is not None and takes(setup, "output_schema"):
        given["output_schema"] = schema
    elif schema is not None:
        messages = with_instructions(messages, schema)
    reports = on_chunk is not None and takes(setup, "on_chunk")
    if reports:
        given["on_chunk"] = on_chunk
    answer = await call_function(functools.partial(setup.chat, messages, prompt_args=prompt_args, **given))
    reply = reply_of(unwrapped(setup), answer)
    if on_chunk is not None and not reports:
        on_chunk(ChatChunk(text=reply.content, message=reply))
    return reply


async def streamed(make: Callable[..., Any]) -> AsyncGenerator[ChatChunk]:
    """The pieces that `make(on_chunk=…)` reports. The call is canceled if the caller stops reading."""
    pieces: asyncio.Queue[ChatChunk | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(piece: ChatChunk) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    running = asyncio.ensure_future(make(on_chunk=put))

    def ended(_: asyncio.Future[Any]) -> None:
        loop.call_soon(pieces.put_nowait, None)

    running.add_done_callback(ended)
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await running
    finally:
        running.cancel()


def with_instructions(messages: Sequence[ChatMessage], schema: OutputSchema) -> list[ChatMessage]:
    """The messages, with the description of the output as an instruction."""
    return with_system_message(messages, schema.instructions)


_MARKS = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE))
    for opening, closing in (
        (r"<think>", r"</think>"),
        (r"<analysis>", r"</analysis>"),
        (r"<reasoning>", r"</reasoning>"),
        (r"```(?:think|reasoning|thought)[^\S\n]*\n", r"(?<=\n)```"),
        (r"(?:^|\n)Reasoning:\s*", r"\n{2,}|\Z"),
    )
)


def extract_reasoning(
    content: str, patterns: Sequence[re.Pattern[str]] | None = None
) -> tuple[str, str | None]:
    """An answer without its reasoning, as models write it between `<think>` tags, and that reasoning."""
    found: list[str] = []
    if patterns is None:
        for opening, closing in _MARKS:
            content = _cut(content, opening, closing, found)
    else:
        for pattern in patterns:
            found += [text.strip() for text in pattern.findall(content) if text.strip()]
            content = pattern.sub("", content)
    cleaned = re.sub(r"\n{3,}", "\n\n", content) if found else content
    return cleaned.strip(), "\n\n".join(found) or None


def _cut(content: str, opening: re.Pattern[str], closing: re.Pattern[str], found: list[str]) -> str:
    """What is outside of the marks. One pattern for both would take quadratic time where a model opens often and never closes."""
    kept: list[str] = []
    at = 0
    while start := opening.search(content, at):
        end = closing.search(content, start.end())
        if end is None:
            break
        kept.append(content[at : start.start()])
        if text := content[start.end() : end.start()].strip():
            found.append(text)
        at = end.end()
    return "".join([*kept, content[at:]])
