"""The error messages of failed actions, and checks of what actions return and send."""

from __future__ import annotations

import inspect
from typing import Any

from emberflow.errors import (
    ActionFailed,
    EmberflowError,
    InvalidArgument,
    NotSerializable,
    RecordedError,
    StepLimitReached,
    describe_cause,
    shorten,
)
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.operators.agents.guards.error_kinds import is_of_the_program
from emberflow.state.sizes import measure

_NEED_NOT_STOP = (
    "one bad input need not stop the job: set AgentExecutionOptions.ON_ERROR to 'skip' or 'dead-letter'"
)


def explained(
    agent: str,
    action: str,
    key: Any,
    event: Event,
    error: BaseException,
    *,
    skipped: bool,
    attempts: int = 1,
) -> EmberflowError:
    """The error with agent, action, key and event; without an action, evaluating its triggers failed."""
    acting = f", action {action!r}" if action else ""
    where = f"agent {agent!r}{acting}, key {shorten(key)}, event {shorten(event)}"
    if isinstance(error, EmberflowError) and not isinstance(error, RecordedError):
        return type(error)(
            f"{where}: {error.message}",
            cause=error.cause,
            way_out=error.way_out or ("" if skipped or is_of_the_program(error) else _NEED_NOT_STOP),
            committed=error.committed,
        )
    raised = "the action raised" if attempts == 1 else f"the action raised in each of {attempts:,} attempts"
    return ActionFailed(
        f"{where}: {raised}" if action else f"{where}: its triggers could not be evaluated",
        cause=describe_cause(error),
        way_out=_about_await(error) or ("fix the action" if skipped else f"fix the action; {_NEED_NOT_STOP}"),
        committed="" if skipped else "what was processed since the last checkpoint is not committed",
    )


def _about_await(error: BaseException) -> str:
    """For a call that was not awaited, or awaited although it blocks; else empty."""
    if not isinstance(error, AttributeError | TypeError | NotSerializable):
        return ""
    said = error.cause if isinstance(error, NotSerializable) else str(error)
    if "'coroutine'" in said and "await" not in said:
        return (
            "await the call, such as `await model.chat(…)` or `await tool.call(…)`; in an action that is a plain `def` "
            "these calls return their answers"
        )
    if "in 'await' expression" in said:
        return (
            "call it without `await`: in a plain `def`, and in programs for Flink Agents, `model.chat(…)` and `tool.call(…)` "
            "return their answers; `await ctx.durable_execute_async(model.chat, …)` lets other keys continue meanwhile"
        )
    return ""


def too_many_steps(limit: int) -> StepLimitReached:
    return StepLimitReached(
        f"one input triggered more than {limit:,} actions",
        cause="actions that trigger each other in a cycle never end by themselves",
        way_out="make one of them stop sending, or raise the option 'max-steps'",
    )


def check_result(result: Any) -> None:
    """Actions send, they do not return: a result that suggests a forgotten `send_event` or `await` is an error."""
    shown = shorten(result)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise InvalidArgument(
            "the action yields instead of sending events",
            way_out="write ctx.send_event(event) instead of yield",
        )
    items: list[Any] = [*result] if result.__class__ in (list, tuple) else [result]
    if any(isinstance(item, Event) for item in items):
        raise InvalidArgument(
            f"the action returned {shown} instead of sending it",
            way_out="use ctx.send_event(event); the return value of an action is ignored",
        )
    if inspect.isawaitable(result):
        close = getattr(result, "close", None)
        if close is not None:
            close()
        raise InvalidArgument(
            f"the action returned a {type(result).__name__} that is never awaited",
            way_out="write it as: async def act(event, ctx)",
        )


def check_input(event: Event, max_bytes: int) -> None:
    """Raises for an input that is larger than an event may be. An input that cannot be stored fails only when it must be."""
    try:
        size = measure(event.attributes["input"])
    except NotSerializable:
        return
    if size > max_bytes:
        raise _too_large("the input", size, max_bytes)


def _too_large(what: str, size: int, max_bytes: int) -> NotSerializable:
    return NotSerializable(
        f"{what} has {size:,} bytes; the limit is {max_bytes:,}",
        way_out="keep large data in a file or store and send its address, or raise 'max-event-bytes'",
    )


def check_event(event: Event, max_bytes: int) -> None:
    """Raises for an event that cannot be sent."""
    if not isinstance(event, Event):
        raise InvalidArgument(
            f"{shorten(event)} is not an event",
            way_out="pass an Event to send_event(), e.g. OutputEvent(output)",
        )
    try:
        # Measures everything in the event: its attributes alone would have to be collected first.
        size = measure(event.__dict__)
    except NotSerializable as error:
        raise NotSerializable(
            f"the event {shorten(event)} cannot be serialized",
            cause=error.cause,
            way_out=_about_await(error) or "send data, not locks, connections, files or generators",
        ) from error
    if size > max_bytes:
        raise _too_large(f"the event {event.type!r}", size, max_bytes)
    if event.type == OutputEvent.EVENT_TYPE and "output" not in event.attributes:
        raise InvalidArgument("the output event has no output", way_out="send OutputEvent(output)")
