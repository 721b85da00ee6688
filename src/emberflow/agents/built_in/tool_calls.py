"""Calls the tools that a model asked for. Errors are returned to the model as text, so that it may try something else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from emberflow.agents.built_in.tool_results import result_of
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.agents.tools.agent_tool import AgentTool
from emberflow.errors import (
    EmberflowError,
    InvalidArgument,
    RecordedError,
    describe_cause,
    did_you_mean,
    shorten,
)
from emberflow.operators.agents.guards.error_kinds import ends_the_action
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.operators.time_limit import TimeLimit
from emberflow.plan.agents.options import AgentExecutionOptions
from emberflow.plan.agents.resources import ResourceType

TOOL = ResourceType.TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The end of one tool call."""

    call_id: str
    name: str
    value: Any
    """Plain data; for a call that failed, the text that the model receives."""
    text: str
    error: str = ""
    external_id: str | None = None

    def to_message(self) -> ChatMessage:
        """The result for the model."""
        return ChatMessage(
            role=MessageRole.TOOL,
            content=self.text,
            extra_args={"external_id": self.external_id or self.call_id, "name": self.name},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One call as the model wrote it."""

    call_id: str
    name: str
    arguments: Any
    external_id: str | None


def offered_tools(model: Any) -> dict[str, Any] | None:
    """The tools that a setup gives its model, by name; None if it is not one of our setups."""
    if not isinstance(model, BaseChatModelSetup):
        return None
    return {tool.name: tool for tool in model.offered_tools()}


async def call_tools(
    calls: CallBranch, wanted: Sequence[Mapping[str, Any]], offered: Mapping[str, Any] | None
) -> list[ToolResult]:
    """The results of all calls, in their order. The calls run concurrently, each is durable; `offered` are the only tools
    that may be called, None means all of the agent's. Raises only what ends the action."""
    # Created in order, because the durable calls are numbered when they are created.
    running = [_call(calls, _wanted(call, at), offered) for at, call in enumerate(wanted)]
    ended = await asyncio.gather(*running, return_exceptions=True)
    for item in ended:
        if isinstance(item, BaseException):
            raise item
    return cast("list[ToolResult]", ended)


def _wanted(call: Mapping[str, Any], at: int) -> _Wanted:
    function: Any = call.get("function") or {}
    arguments: Any = function.get("arguments")
    external_id: Any = call.get("original_id")
    return _Wanted(
        call_id=str(call.get("id") or f"call-{at}"),
        name=str(function.get("name") or ""),
        arguments={} if arguments is None or arguments == "" else arguments,
        external_id=None if external_id is None else str(external_id),
    )


def _call(calls: CallBranch, wanted: _Wanted, offered: Mapping[str, Any] | None) -> Any:
    """A coroutine of a ToolResult; the call is numbered here."""
    try:
        tool = _tool(calls, wanted.name, offered)
        arguments, injected = _arguments(wanted), calls.injected(tool)
    except Exception as error:
        return _known(_failed(wanted, calls.masked(_told(error))))
    if isinstance(tool, AgentTool):
        return _call_agent(calls, wanted, tool, arguments)
    seconds = calls.config.get(AgentExecutionOptions.TOOL_CALL_TIMEOUT) / 1000

    async def make(given: dict[str, Any], **settings: Any) -> dict[str, Any]:
        limit = TimeLimit(seconds)
        try:
            async with limit:
                value = await calls.run(tool.call, given, **settings)
            return result_of(wanted.name, value)
        except TimeoutError as error:
            late = f"the tool {wanted.name!r} did not answer within {seconds:g} s"
            return {"error": calls.masked(late if limit.expired() else _told(error))}
        except BaseException as error:
            if ends_the_action(error) or _is_cancelled_from_outside(error):
                raise
            # Recorded as the outcome: when the action is repeated, the model receives the same error.
            return {"error": calls.masked(_told(error))}

    return _outcome(wanted, calls.call(tool, wanted.name, TOOL, make, (arguments,), injected))


def _call_agent(calls: CallBranch, wanted: _Wanted, tool: AgentTool, arguments: dict[str, Any]) -> Any:
    try:
        call = calls.call_agent(wanted.name, tool.input_of(arguments))
    except InvalidArgument as error:
        return _known(_failed(wanted, calls.masked(_told(error))))
    return _answer_of_agent(calls, wanted, call)


async def _answer_of_agent(calls: CallBranch, wanted: _Wanted, call: Any) -> ToolResult:
    try:
        outcome = result_of(wanted.name, await call)
    except BaseException as error:
        if ends_the_action(error) or _is_cancelled_from_outside(error):
            raise
        outcome = {"error": calls.masked(_told(error))}
    return _result(wanted, outcome)


async def _outcome(wanted: _Wanted, call: Any) -> ToolResult:
    return _result(wanted, await call)


def _result(wanted: _Wanted, outcome: Mapping[str, Any]) -> ToolResult:
    if "error" in outcome:
        return _failed(wanted, outcome["error"])
    return ToolResult(
        call_id=wanted.call_id,
        name=wanted.name,
        value=outcome["value"],
        text=outcome.get("text", outcome["value"]),
        external_id=wanted.external_id,
    )


async def _known(result: ToolResult) -> ToolResult:
    return result


def _failed(wanted: _Wanted, error: str) -> ToolResult:
    # An error may quote what cannot be sent.
    text = f"Error: {error}".encode(errors="backslashreplace").decode()
    return ToolResult(
        call_id=wanted.call_id,
        name=wanted.name,
        value=text,
        text=text,
        error=error,
        external_id=wanted.external_id,
    )


class _NoSuchTool(Exception):
    pass


def _tool(calls: CallBranch, name: str, offered: Mapping[str, Any] | None) -> Any:
    declared = calls.has_resource(name, TOOL) or calls.has_resource(name, ResourceType.AGENT)
    if offered is None:
        if not declared and not calls.has_mcp_servers:
            raise _NoSuchTool(f"there is no tool {name!r}")
        return calls.resource(name, TOOL)
    if name not in offered:
        known = ", ".join(offered) or "none"
        raise _NoSuchTool(f"there is no tool {name!r}; your tools: {known}{did_you_mean(name, offered)}")
    # The agent's own has its limits.
    return calls.resource(name, TOOL) if declared else offered[name]


def _arguments(wanted: _Wanted) -> dict[str, Any]:
    given: Any = wanted.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise _BrokenArguments(
                f"the arguments of the tool {wanted.name!r} are not JSON ({error}): {shorten(given)}"
            ) from None
    if not isinstance(given, dict):
        raise _BrokenArguments(
            f"the arguments of the tool {wanted.name!r} must be a JSON object, got {shorten(given)}"
        )
    return cast("dict[str, Any]", given)


class _BrokenArguments(Exception):
    pass


def _told(error: BaseException) -> str:
    """The text of an error for the model."""
    if isinstance(error, _NoSuchTool | _BrokenArguments):
        return str(error)
    if isinstance(error, EmberflowError) and not isinstance(error, RecordedError):
        return "; ".join(filter(None, (error.message, error.cause, error.way_out)))
    return describe_cause(error)


def _is_cancelled_from_outside(error: BaseException) -> bool:
    """A tool that cancels itself has failed; the task of the action may be canceled from outside."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)
