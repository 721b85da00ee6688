"""The built-in actions: ordinary actions of a plan that answer `ChatRequestEvent` and `ToolRequestEvent`.

They are added to the plan of an agent that uses these events (`plan/agents/built_in_actions.py`). Between its events a chat
is in sensory memory (`stored_chats.py`); what it does is decided by the loop (`chat_loop.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

from emberflow.agents.built_in.calls_ahead import take_outcome, with_calls_ahead
from emberflow.agents.built_in.chat_events import ChatRequestEvent, ChatResponseEvent
from emberflow.agents.built_in.chat_loop import Chat
from emberflow.agents.built_in.model_calls import retries_of
from emberflow.agents.built_in.stored_chats import StoredChats
from emberflow.agents.built_in.tool_calls import ToolResult, call_tools, offered_tools
from emberflow.agents.built_in.tool_events import ToolRequestEvent, ToolResponseEvent
from emberflow.agents.built_in.tool_results import shown
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.errors import describe_cause
from emberflow.events.agent_events import Event
from emberflow.operators.agents.guards.error_kinds import ends_the_action
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.operators.agents.runner_context import RunnerContext, branch_of, next_events
from emberflow.plan.agents.action_code import sends_only
from emberflow.plan.agents.options import AgentExecutionOptions, ErrorHandlingStrategy
from emberflow.plan.agents.resources import ResourceType

_log = logging.getLogger("emberflow.agents")


@sends_only(ToolRequestEvent, ChatResponseEvent)
async def chat_model_action(event: Event, ctx: RunnerContext) -> None:
    """Asks the model of a chat request, again with the results when the tools that it wanted have ended."""
    stored = StoredChats(ctx.sensory_memory)
    turn = _turn(event, stored, branch_of(ctx, event))
    if turn is None:
        # The answer to a tool request that the user's own action sent, and handles.
        return
    request_id, chat = turn
    if event.type != ChatRequestEvent.EVENT_TYPE:
        stored.resume(ToolResponseEvent.from_event(event).request_id)
    try:
        answer: dict[str, Any] | None = take_outcome(event.id, ctx.sensory_memory)
        if answer is None:
            later = {next_event.id: _answer_ahead(next_event, stored, ctx) for next_event in next_events(ctx)}
            reply = await with_calls_ahead(chat.next_reply(), later, ctx)
        else:
            reply = chat.take(answer)
    except Exception as error:
        if not _is_ignored(error, ctx):
            raise
        _log.warning(
            "the chat request %s to the model %r failed and is not answered: %s",
            request_id, chat.model, describe_cause(error),
        )  # fmt: skip
        stored.forget(request_id)
        return
    if reply.tool_calls:
        wanted = ToolRequestEvent(model=chat.model, tool_calls=reply.tool_calls)
        ctx.send_event(wanted)
        stored.keep(request_id, chat, wanted.id)
        return
    retries, waited_s = retries_of(chat.replies)
    ctx.send_event(ChatResponseEvent(request_id, reply, retries, waited_s))
    stored.forget(request_id)


def _answer_ahead(event: Event, stored: StoredChats, ctx: RunnerContext) -> Awaitable[dict[str, Any] | None]:
    """The model's answer to an event of a later action."""
    # Numbered here, in the order of the events.
    calls = branch_of(ctx, event)

    async def answer() -> dict[str, Any] | None:
        turn = _turn(event, stored, calls)
        return None if turn is None else await turn[1].answer_ahead()

    return answer()


def _turn(event: Event, stored: StoredChats, calls: CallBranch) -> tuple[Any, Chat] | None:
    """The id of the chat request, and the chat, ready to ask the model; None if no chat waits for this event."""
    if event.type == ChatRequestEvent.EVENT_TYPE:
        request = ChatRequestEvent.from_event(event)
        return event.id, Chat(
            calls=calls,
            model=request.model,
            messages=request.messages,
            prompt_args=request.prompt_args,
            schema=request.output_schema,
            max_steps=request.max_steps,
        )
    response = ToolResponseEvent.from_event(event)
    found = stored.waiting(response.request_id, calls)
    if found is not None:
        chat = found[1]
        chat.add_results(_results(response, chat.messages[-1]))
    return found


def _is_ignored(error: Exception, ctx: RunnerContext) -> bool:
    strategy = ctx.config.get(AgentExecutionOptions.ERROR_HANDLING_STRATEGY)
    return strategy is ErrorHandlingStrategy.IGNORE and not ends_the_action(error)


@sends_only(ToolResponseEvent)
async def tool_call_action(event: Event, ctx: RunnerContext) -> None:
    """Calls the tools of a tool request concurrently."""
    sent: dict[str, Any] | None = take_outcome(event.id, ctx.sensory_memory)
    if sent is None:
        stored = StoredChats(ctx.sensory_memory)
        own = _call_tools(event, stored, ctx)
        later = {next_event.id: _call_tools(next_event, stored, ctx) for next_event in next_events(ctx)}
        sent = await with_calls_ahead(own, later, ctx)
    ctx.send_event(ToolResponseEvent(**sent))


def _call_tools(event: Event, stored: StoredChats, ctx: RunnerContext) -> Awaitable[dict[str, Any]]:
    """The fields of the response."""
    # Numbered here, in the order of the events.
    calls = branch_of(ctx, event)

    async def call() -> dict[str, Any]:
        request, offered = ToolRequestEvent.from_event(event), None
        if stored.waits_for(event.id):
            # A model may call its own tools only; an action of the agent all of them.
            offered = offered_tools(calls.resource(request.model, ResourceType.CHAT_MODEL))
        results = await call_tools(calls, request.tool_calls, offered)
        return {
            "request_id": event.id,
            "responses": {result.call_id: result.value for result in results},
            "external_ids": {result.call_id: result.external_id for result in results},
            "success": {result.call_id: not result.error for result in results},
            "error": {result.call_id: result.error for result in results if result.error},
        }

    return call()


def _results(response: ToolResponseEvent, reply: ChatMessage) -> list[ToolResult]:
    """The results in the order of the calls."""
    found: list[ToolResult] = []
    for call in reply.tool_calls:
        call_id = call["id"]
        name = str(call.get("function", {}).get("name"))
        value, text = shown(name, response.responses.get(call_id, "Error: there is no result"))
        found.append(
            ToolResult(
                call_id=call_id,
                name=name,
                value=value,
                text=text,
                error=response.error.get(call_id, ""),
                external_id=response.external_ids.get(call_id),
            )
        )
    return found


BUILT_IN_ACTIONS = (
    ("chat_model_action", (ChatRequestEvent, ToolResponseEvent), chat_model_action),
    ("tool_call_action", (ToolRequestEvent,), tool_call_action),
)
"""Name, trigger conditions and function of each."""
