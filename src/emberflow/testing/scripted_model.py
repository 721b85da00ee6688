"""`ScriptedChatModel`: a chat model whose replies, delays and errors are defined by a test.

Used like any other connection, usually by descriptor:

    ResourceDescriptor(clazz=ScriptedChatModel, replies=[When(contains="refund", reply="Sorry!"), When(reply="Hello.")])
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelConnection
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidArgument, ResourceFailed, describe_cause, shorten

Failure = int | Literal["timeout"]
"""A status such as 429 or 500, or a timeout."""


class ScriptedError(Exception):
    """The error of a scripted service; `status_code` is None for a timeout."""

    def __init__(self, message: str, status_code: int | None = None) -> None:
        super().__init__(message, status_code)
        self.status_code = status_code

    def __str__(self) -> str:
        return self.args[0]


class ScriptedTimeout(ScriptedError, TimeoutError):
    """A scripted timeout."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a script."""

    content: str = ""
    tool_calls: Sequence[dict[str, Any]] = field(default=(), kw_only=True)
    """See `tool_call`."""

    delay_s: float = field(default=0.0, kw_only=True)
    error: Failure | None = field(default=None, kw_only=True)
    """Raised instead of the reply, every time."""

    errors_first: Sequence[Failure] = field(default=(), kw_only=True)
    """Raised one by one before the reply is returned; counted per request, in one process."""

    extra_args: dict[str, Any] = field(default_factory=dict[str, Any], kw_only=True)


Answer = str | Reply | ChatMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A rule: what to reply if the last user message contains a string or matches a pattern; without either it always applies.

    Several replies are turns after that message: `[Reply(tool_calls=[…]), "done"]` calls a tool and then replies to its
    result. The last turn is repeated for further requests, unless it calls a tool.
    """

    contains: str = ""
    matches: str = ""
    reply: Answer | Sequence[Answer]

    def fits(self, asked: str) -> bool:
        """Whether the condition holds for this message."""
        return self.contains in asked and re.search(self.matches, asked) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a scripted model."""

    messages: list[ChatMessage]
    tools: list[str]
    settings: dict[str, Any]


def tool_call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A tool call for `Reply(tool_calls=[…])`; its id is assigned with the reply and derived from the conversation."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


Replies = (
    Sequence[Answer | When] | Mapping[str, Answer | Sequence[Answer]] | Callable[[list[ChatMessage]], Answer]
)


class ScriptedChatModel(BaseChatModelConnection):
    """Replies from a script. Which kind of script to use:

    - rules (`When(…)`, or a mapping from regular expressions to replies) and an importable function of the messages decide
      by content. Use them for agents: keys run concurrently in any order, and after a crash a request is repeated, possibly
      in another process;
    - plain replies are returned in the order of the calls, counted separately in every process. Use them for a single
      conversation without crashes.

    In a mixed list the rules come first. A request without a reply raises ResourceFailed.
    """

    _calls_by_name: ClassVar[dict[str, list[ModelCall]]] = {}

    def __init__(self, replies: Replies, *, name: str = "") -> None:
        """With a `name`, `calls_of(name)` returns the calls of all instances in this process."""
        self._replies = replies
        self._name = name
        self._rules: list[When] = []
        self._script: list[Answer] = []
        if isinstance(replies, Mapping):
            rules = cast("Mapping[str, Answer | Sequence[Answer]]", replies)
            self._rules = [When(matches=pattern, reply=reply) for pattern, reply in rules.items()]
        elif isinstance(replies, str | Reply | ChatMessage | When):
            raise InvalidArgument("replies must be a list", way_out=f"write replies=[{shorten(replies)}]")
        elif not callable(replies):
            self._rules = [item for item in replies if isinstance(item, When)]
            self._script = [item for item in replies if not isinstance(item, When)]
        for rule in self._rules:
            _check_rule(rule)
        for item in self._script:
            _as_reply(item)
        self._start()

    def _start(self) -> None:
        self._given = 0
        self._failures: dict[str, int] = {}
        self._lock = threading.Lock()
        self.calls: list[ModelCall] = self.calls_of(self._name) if self._name else []

    @classmethod
    def calls_of(cls, name: str) -> list[ModelCall]:
        """The calls that instances of this name received in this process, as a list that may be cleared."""
        return cls._calls_by_name.setdefault(name, [])

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> ChatMessage:
        sent = list(messages)
        with self._lock:
            # Decided before any waiting: the order of the calls is the order of the script.
            self.calls.append(
                ModelCall(messages=sent, tools=[tool.name for tool in tools or ()], settings=kwargs)
            )
            reply = self._decide(sent)
            failure = self._failure(reply, sent)
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if failure == "timeout":
            raise ScriptedTimeout("the script says: timeout")
        if failure is not None:
            raise ScriptedError(f"the script says: status {failure}", failure)
        _, turn = _asked(sent)
        calls = [{"id": f"call-{turn}-{index}", **call} for index, call in enumerate(reply.tool_calls)]
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=reply.content,
            tool_calls=calls,
            extra_args=dict(reply.extra_args),
        )

    def _decide(self, messages: list[ChatMessage]) -> Reply:
        if callable(self._replies):
            return _as_reply(self._replies(messages))
        asked, turn = _asked(messages)
        for rule in self._rules:
            if rule.fits(asked):
                turns = _turns(rule.reply)
                chosen = _as_reply(turns[min(turn, len(turns) - 1)])
                if turn >= len(turns) and chosen.tool_calls:
                    # Repeated, it would keep an agent calling tools without end.
                    raise _no_answer(
                        messages,
                        f"the rule {shorten(rule)} ends with a tool call, and its result was returned",
                    )
                return chosen
        if self._given < len(self._script):
            self._given += 1
            return _as_reply(self._script[self._given - 1])
        if self._script:
            raise _no_answer(messages, f"all {len(self._script)} replies of the script are used up")
        raise _no_answer(messages, f"none of the {len(self._rules)} rules matches the last user message")

    def _failure(self, reply: Reply, messages: list[ChatMessage]) -> Failure | None:
        if reply.errors_first:
            request = json.dumps([message.to_dict() for message in messages], default=repr)
            seen = self._failures.get(request, 0)
            if seen < len(reply.errors_first):
                self._failures[request] = seen + 1
                return reply.errors_first[seen]
        return reply.error

    def __getstate__(self) -> dict[str, Any]:
        return {"replies": self._replies, "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["replies"], name=state["name"])

    def __repr__(self) -> str:
        return f"ScriptedChatModel({shorten(self._replies)})"


def _asked(messages: list[ChatMessage]) -> tuple[str, int]:
    """The last user message (without one: the last system message), and how often the model has replied since."""
    for role in (MessageRole.USER, MessageRole.SYSTEM):
        found = [index for index, message in enumerate(messages) if message.role is role]
        if found:
            since = messages[found[-1] + 1 :]
            return messages[found[-1]].content, sum(item.role is MessageRole.ASSISTANT for item in since)
    return "", sum(item.role is MessageRole.ASSISTANT for item in messages)


def _turns(reply: Answer | Sequence[Answer]) -> list[Answer]:
    # A string is a sequence too.
    return [reply] if isinstance(reply, str | Reply | ChatMessage) else list(reply)


def _check_rule(rule: When) -> None:
    try:
        re.compile(rule.matches)
    except (re.error, TypeError) as error:
        raise InvalidArgument(
            f"{rule.matches!r} is not a regular expression",
            cause=describe_cause(error),
            way_out="When(contains=…) takes a plain string",
        ) from error
    if not _turns(rule.reply):
        raise InvalidArgument(f"the rule {shorten(rule)} has no reply")
    for answer in _turns(rule.reply):
        _as_reply(answer)


def _as_reply(answer: Any) -> Reply:
    if isinstance(answer, Reply):
        for failure in (answer.error, *answer.errors_first):
            if failure not in (None, "timeout") and type(failure) is not int:
                raise InvalidArgument(
                    f"a script fails with a status such as 429 or with 'timeout', not with {shorten(failure)}"
                )
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, ChatMessage):
        return Reply(answer.content, tool_calls=answer.tool_calls, extra_args=answer.extra_args)
    raise InvalidArgument(
        f"{shorten(cast('object', answer))} is not a reply of a script",
        way_out="use a string, a Reply, a ChatMessage or a When",
    )


def _no_answer(messages: list[ChatMessage], why: str) -> ResourceFailed:
    shown = " | ".join(shorten(str(message), 200) for message in messages[-4:])
    before = f"({len(messages) - 4} messages before) " if len(messages) > 4 else ""
    return ResourceFailed(
        f"the scripted model has no answer to: {before}{shown or 'a request without messages'}",
        cause=why,
        way_out="add a reply, or a rule for everything else: When(reply='…')",
    )
