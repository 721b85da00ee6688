"""The loop of a chat: the model is asked, the tools that it wants are called, it is asked again, until it answers.

`ctx.chat` runs it inside one action (`chat_until_answered`); the built-in actions continue one `Chat` from event to event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from emberflow.agents.built_in.compaction import HistoryLimit, Summary, fitted, to_summarize, with_summary
from emberflow.agents.built_in.messages import as_messages
from emberflow.agents.built_in.model_calls import call_model
from emberflow.agents.built_in.tool_calls import ToolResult, call_tools, offered_tools
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.output_schema import STRUCTURED_OUTPUT, OutputSchema
from emberflow.agents.models.reply_end import (
    check_answered,
    cut_before_it_began,
    cut_output,
    is_cut,
    with_refusal,
)
from emberflow.errors import InvalidArgument, OutputMismatch, StepLimitReached
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.plan.agents.options import AgentExecutionOptions, HistoryStrategy
from emberflow.plan.agents.resources import ResourceType


@dataclass(slots=True, kw_only=True)
class Chat:
    """A chat on its way to the final answer."""

    calls: CallBranch
    model: str
    messages: list[ChatMessage]
    """The whole chat; only ever appended to."""
    text: str | None = None
    """The only message, if it was given as a string; recorded as such."""
    prompt_args: Mapping[str, Any] | None = None
    schema: OutputSchema | None = None
    max_steps: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given: int = -1
    """How many of the messages were given; the others were added by the loop."""
    summaries: list[Summary] = field(default_factory=list[Summary])

    def __post_init__(self) -> None:
        if self.given < 0:
            self.given = len(self.messages)
        if self.max_steps is not None and self.max_steps < 1:
            raise InvalidArgument(f"max_steps must be at least 1, got {self.max_steps!r}")

    @property
    def replies(self) -> list[ChatMessage]:
        """What the model has answered so far."""
        return [item for item in self.messages[self.given :] if item.role is MessageRole.ASSISTANT]

    @property
    def _corrections(self) -> int:
        """How many replies were sent back, in the whole chat: tools that are called in between do not start the count over."""
        return sum(item.role is MessageRole.USER for item in self.messages[self.given :])

    @property
    def offered(self) -> dict[str, Any] | None:
        """The tools that the model may call, by name; None if that is not known."""
        return offered_tools(self.calls.resource(self.model, ResourceType.CHAT_MODEL))

    async def next_reply(self) -> ChatMessage:
        """The model's next message, which asks for tools or is the final answer; a final answer has the typed value in its
        `extra_args[STRUCTURED_OUTPUT]`. Raises StepLimitReached, OutputMismatch, ModelRefused and what the model's service
        raises."""
        while True:
            reply = _with_ids(with_refusal(await self._ask()))
            self.messages.append(reply)
            if reply.tool_calls:
                return reply
            if is_cut(reply) and not reply.content and self.schema is None:
                raise cut_before_it_began(reply, self.model)
            if self.schema is None:
                return reply
            check_answered(reply, self.model)
            try:
                return self._typed(reply)
            except OutputMismatch as problem:
                if is_cut(reply):
                    raise cut_output(reply, self.model, self.schema.name) from None
                if self._corrections >= self.calls.config.get(AgentExecutionOptions.CHAT_MAX_CORRECTIONS):
                    raise
                self.messages.append(ChatMessage(content=problem.for_model))

    def _no_answer(self) -> str:
        name = "the output type" if self.schema is None else self.schema.name
        return f"its last reply does not fit {name}: {self.replies[-1].content[:200]!r}"

    def _typed(self, reply: ChatMessage) -> ChatMessage:
        """An answer together with its typed value."""
        if self.schema is None or reply.tool_calls:
            return reply
        value = self.schema.parse(reply.content)
        return replace(reply, extra_args={**reply.extra_args, STRUCTURED_OUTPUT: value})

    async def answer_ahead(self) -> dict[str, Any]:
        """What `next_reply` adds to the chat, as plain data: the same chat continues with it in a later action (`take`)."""
        messages, summaries = len(self.messages), len(self.summaries)
        await self.next_reply()
        return {
            "messages": [message.to_dict() for message in self.messages[messages:]],
            "summaries": [asdict(summary) for summary in self.summaries[summaries:]],
        }

    def take(self, answer: Mapping[str, Any]) -> ChatMessage:
        """The model's next message, from an `answer_ahead` of the same chat."""
        self.messages += [ChatMessage.from_dict(item) for item in answer["messages"]]
        self.summaries += [Summary(**item) for item in answer["summaries"]]
        return self._typed(self.messages[-1])

    def add_results(self, results: Sequence[ToolResult]) -> None:
        """The results of the tools that the last reply asked for."""
        self.messages += [result.to_message() for result in results]

    async def _ask(self) -> ChatMessage:
        limit = self.max_steps or self.calls.config.get(AgentExecutionOptions.CHAT_MAX_STEPS)
        if len(self.replies) >= limit:
            tools = _tool_names(self.replies[-1])
            raise StepLimitReached(
                f"the chat with the model {self.model!r} has no final answer after {limit:,} calls of the model",
                cause=f"its last reply asked for {tools}" if tools else self._no_answer(),
                way_out="give it a clearer task or fewer tools, or raise max_steps or the option 'chat.max-steps'",
            )
        return await call_model(
            self.calls, self.model, await self._sent(), self.prompt_args, self.schema, self.settings
        )

    async def _sent(self) -> str | list[ChatMessage]:
        model: Any = self.calls.resource(self.model, ResourceType.CHAT_MODEL)
        limit = HistoryLimit.of(self.calls.config, model)
        if self.text is not None and len(self.messages) == 1:
            return self.text
        summary = self.summaries[-1] if self.summaries else None
        wanted = to_summarize(self.messages, summary, limit)
        if wanted is not None:
            end, question = wanted
            told = await call_model(
                self.calls, limit.summary_model or self.model, question, None, None, self.settings
            )
            if told.content:
                summary = Summary(end=end, text=told.content)
                self.summaries.append(summary)
        if limit.strategy is HistoryStrategy.SUMMARIZE:
            return fitted(with_summary(self.messages, summary), limit)
        return fitted(self.messages, limit)


def _with_ids(reply: ChatMessage) -> ChatMessage:
    """The reply with a different id for each of its tool calls: results are found by them."""
    ids = [call.get("id") for call in reply.tool_calls]
    if all(isinstance(item, str) and item for item in ids) and len(set(ids)) == len(ids):
        return reply
    seen: set[Any] = set()
    named: list[dict[str, Any]] = []
    for at, call in enumerate(reply.tool_calls):
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in seen:
            call_id = f"{call_id or 'call'}-{at}"
        seen.add(call_id)
        named.append({**call, "id": call_id})
    return replace(reply, tool_calls=named)


def _tool_names(reply: ChatMessage) -> str:
    return ", ".join(sorted({str(call.get("function", {}).get("name")) for call in reply.tool_calls}))


async def chat_until_answered(
    calls: CallBranch,
    model: str,
    messages: Any,
    prompt_args: Mapping[str, Any] | None,
    *,
    output: Any,
    max_steps: int | None,
    settings: Mapping[str, Any],
) -> Any:
    """The final answer: a ChatMessage, or the typed value if `output` is given."""
    chat = Chat(
        calls=calls,
        model=model,
        messages=as_messages(messages),
        text=messages if isinstance(messages, str) else None,
        prompt_args=prompt_args,
        schema=None if output is None else OutputSchema(output),
        max_steps=max_steps,
        settings=settings,
    )
    while (reply := await chat.next_reply()).tool_calls:
        chat.add_results(await call_tools(calls, reply.tool_calls, chat.offered))
    return reply if output is None else reply.extra_args[STRUCTURED_OUTPUT]
