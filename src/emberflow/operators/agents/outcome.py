"""What a finished action of a detached run leaves in the log: enough to apply its effects without running it again."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.events.agent_events import Event
from emberflow.events.run_ids import format_outcome
from emberflow.events.stored_types import stored_type
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallLog, CallRecord
from emberflow.operators.agents.calls.stored_errors import StoredError, revived, stored
from emberflow.operators.agents.guards.attempts import GaveUp, unwrapped
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
        # What a failed action spent is spent all the same.
        outcome = ActionOutcome(
            sent=[],
            writes=execution.kept,
            error=stored(*unwrapped(failure), run.runtime.resources.secrets),
            spent=spent,
            base=run.failures,
        )
    record = CallRecord(format_outcome(run.action_id), name, "", f"action {name!r}", RETURNED, outcome)
    try:
        await log.write(record)
    except (NotSerializable, CallLogFailed):
        return
