"""What happens to an action that has failed permanently: its fallback, an error event, or a dead letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberflow.errors import ActionFailed, CallLogFailed, ReplayMismatch, StepLimitReached, type_name
from emberflow.events.agent_events import ErrorEvent, Event, InputEvent
from emberflow.events.batch import MIN_WATERMARK
from emberflow.operators.agents.guards.attempts import Failure, message_of

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.agent_runtime import AgentRuntime
    from emberflow.operators.agents.routes import RunnableAction

_WITHOUT_FALLBACK = (StepLimitReached, CallLogFailed, ReplayMismatch)
"""A fallback would be one more step, could not rely on the log either, or would be paid for what is recorded."""


def deals_with(
    runtime: AgentRuntime,
    run: AgentRun,
    action: RunnableAction,
    event: Event,
    error: BaseException,
    attempts: int,
) -> bool:
    """Whether the run continues: with the action's fallback next, or with the actions for error events in their turn."""
    run.failure = None
    if isinstance(error, _WITHOUT_FALLBACK):
        return False
    failure = describe(runtime, action.name, error, attempts)
    if action.guards.fallback is not None:
        run.failure = failure
        run.tasks.appendleft((runtime.routes.actions[action.guards.fallback], event))
        return True
    if not runtime.routes.handles_errors or event.type == ErrorEvent.EVENT_TYPE:
        return False
    told = ErrorEvent(action.name, event, failure.error_type, failure.message, failure.attempts)
    try:
        sent = run.identified(told, event, action)
        handlers = runtime.routes.triggered_by(sent)
    except Exception:
        # The error event is too large, or a condition fails: the option on-error decides.
        return False
    if handlers and runtime.recorder is not None:
        runtime.recorder.event(run, sent)
    run.tasks.extend((handler, sent) for handler in handlers)
    return bool(handlers)


def describe(runtime: AgentRuntime, action: str, error: BaseException, attempts: int) -> Failure:
    """Without secrets: it is stored, and passed to actions."""
    shown = ActionFailed(message_of(error))
    runtime.resources.hide_secrets(shown)
    return Failure(action=action, error_type=type_name(error), message=shown.message, attempts=attempts)


def letter_of(
    runtime: AgentRuntime, run: AgentRun, action: str, error: BaseException, attempts: int
) -> dict[str, Any]:
    """The dead letter of a run: its input and its error."""
    failure = describe(runtime, action, error, attempts)
    first = run.first
    is_input = first is None or isinstance(first, InputEvent)
    return {
        "id": run.run_id,
        "agent": runtime.plan.name,
        "action": action,
        "event_type": InputEvent.EVENT_TYPE if first is None else first.type,
        "key": run.key,
        "input": None if first is None else first.get_attr("input") if is_input else dict(first.attributes),
        "timestamp": None if run.timestamp == MIN_WATERMARK else run.timestamp,
        "error_type": failure.error_type,
        "error": failure.message,
        "attempts": failure.attempts,
        "failed_ms": run.scope.clock.now_ms(),
    }
