"""What actions leave in the log, besides their calls: enough to apply their effects without running them again.

An action of a detached run leaves its outcome. An action that has failed leaves its failure if the run continues with it: what
follows from the failure may be paid for, so the action must not succeed when the run is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.events.agent_events import Event
from emberflow.events.identity import fingerprint
from emberflow.events.run_ids import format_failure, format_outcome
from emberflow.events.stored_types import stored_type
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallLog, CallRecord, Recorded
from emberflow.operators.agents.calls.failed_calls import Asker, FailedCall, ids_of
from emberflow.operators.agents.calls.stored_errors import StoredError, revived, stored
from emberflow.operators.agents.guards.attempts import GaveUp, apart, unwrapped
from emberflow.operators.agents.guards.budgets import Amounts
from emberflow.operators.agents.guards.delayed_events import Due
from emberflow.operators.agents.guards.error_kinds import log_failure
from emberflow.state.memory import Write

if TYPE_CHECKING:
    from emberflow.operators.agents.execution import ActionExecution


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """Events, memory writes and the like of an action that ended, or the error that it raised and what it keeps nevertheless."""

    sent: list[Event]
    writes: list[Write]
    error: StoredError | Exception | None = None
    """The first version stored the exception itself."""
    spent: Amounts = field(default_factory=Amounts)
    later: list[Due] = field(default_factory=list[Due])
    base: tuple[str, ...] = ()
    """Actions of the key that had failed since state was last committed: they determine the memory that the action saw."""
    reads: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    """What the action read from memory, if that is observed."""

    def __setstate__(self, state: Any) -> None:
        # Like a dataclass with slots does; earlier versions had fewer fields.
        object.__setattr__(self, "base", ())
        object.__setattr__(self, "reads", {})
        for item, value in zip(fields(self), state, strict=False):
            object.__setattr__(self, item.name, value)


def raised_by(outcome: ActionOutcome) -> BaseException | None:
    """The exception that the action raised, or None."""
    error = outcome.error
    if not isinstance(error, StoredError):
        return error
    found = revived(error)
    return found if error.attempts == 1 else GaveUp(found, error.attempts)


async def leave_behind(log: CallLog, execution: ActionExecution, failure: Exception | None) -> None:
    """Records the outcome of an action whose run was detached. Without it the action is started again, so an error while
    recording is not a failure of the action. A failure of the log is not an outcome: a later start would find it and fail
    a batch because of a fault that is gone."""
    if failure is not None and log_failure(failure) is not None:
        return
    run, guards, name = execution.run, execution.guards, execution.action.name
    spent: Amounts = {} if guards is None else guards.spent
    if failure is None:
        later = [] if guards is None else guards.later
        outcome = ActionOutcome(
            sent=execution.sent,
            writes=run.writes(),
            spent=spent,
            later=later,
            base=run.failures,
            reads=run.reads(),
        )
    else:
        outcome = _failed(execution, *unwrapped(failure))
    record = CallRecord(format_outcome(run.action_id), name, "", _shown(name), RETURNED, outcome)
    try:
        await log.write(record)
    except (NotSerializable, CallLogFailed):
        return


def _failed(execution: ActionExecution, error: BaseException, attempts: int) -> ActionOutcome:
    run, guards = execution.run, execution.guards
    return ActionOutcome(
        sent=[],
        writes=execution.kept,
        error=stored(error, attempts, run.runtime.resources.secrets),
        # What a failed action spent is spent all the same.
        spent={} if guards is None else guards.spent,
        base=run.failures,
    )


# handled failures


def keep_failure(
    log: Recorded,
    execution: ActionExecution,
    error: BaseException,
    attempts: int,
    askers: tuple[Asker, ...] = (),
) -> FailedCall:
    """Records a failure with which the run continues, before anything that follows from it."""
    call_id, name = _failure_id(execution), execution.action.name
    if log.find(call_id) is None:
        outcome = _failed(execution, error, attempts)
        log.write_first(
            CallRecord(call_id, name, _identity(execution), f"failure of {_shown(name)}", RETURNED, outcome)
        )
    return FailedCall([*ids_of(execution.failed_calls), call_id], askers)


def raise_kept_failure(log: Recorded, execution: ActionExecution) -> None:
    """Raises the failure of the action that was recorded before the run was repeated, if there is one."""
    call_id = _failure_id(execution)
    found = log.find(call_id)
    if found is None:
        return
    if (found.function, found.arguments) != (execution.action.name, _identity(execution)):
        # Of other code, or of a run that took another way.
        log.forget([call_id])
        return
    outcome: ActionOutcome = apart(found.value)
    error = raised_by(outcome)
    assert error is not None
    execution.kept = outcome.writes
    if outcome.spent:
        execution.guarded().spent = outcome.spent
    raise error


def _failure_id(execution: ActionExecution) -> str:
    return format_failure(execution.call_prefix, execution.path)


def _identity(execution: ActionExecution) -> str:
    return fingerprint((execution.event.type, execution.event.attributes))


def _shown(action: str) -> str:
    return f"action {action!r}"
