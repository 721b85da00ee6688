"""What an error means for whoever could go on in spite of it: retries, the model that asked for a tool, ignored requests.

The only place that decides it; the callers add nothing but the question.
"""

from __future__ import annotations

from typing import Any, cast

from emberflow.errors import (
    BudgetExceeded,
    CallLogFailed,
    EnvironmentProblem,
    ModelRefused,
    NotSerializable,
    ProgramError,
    ReplayMismatch,
    ResourceFailed,
    StepLimitReached,
)

_ENDING = (BudgetExceeded, ReplayMismatch)
_FINAL = (*_ENDING, StepLimitReached, NotSerializable)
_OF_THE_PROGRAM = (ProgramError, ResourceFailed, EnvironmentProblem)
"""No input is at fault."""
_WORTH_ANOTHER_CALL = frozenset({408, 409, 425, 429})
"""Of the statuses that blame the request, those that do not mean the request itself."""


def log_failure(error: BaseException) -> CallLogFailed | None:
    """The failure of the call log that an error is, contains or was caused by: not the action's fault, and not for its
    fallback."""
    met: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        found = ahead.pop()
        if found is None or id(found) in met:
            continue
        if isinstance(found, CallLogFailed):
            return found
        met.add(id(found))
        ahead += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            ahead += cast("BaseExceptionGroup[BaseException]", found).exceptions
    return None


def ends_the_action(error: BaseException) -> bool:
    """Whether an error inside a chat ends the action: no model is told of it, and no strategy ignores it."""
    return isinstance(error, (*_ENDING, KeyboardInterrupt, GeneratorExit)) or log_failure(error) is not None


def is_final(error: BaseException) -> bool:
    """Whether another attempt of the action would raise it again, or must not be made."""
    return isinstance(error, _FINAL) or log_failure(error) is not None


def is_permanent(error: BaseException) -> bool:
    """Whether another call of a service would fail in the same way, or must not be made."""
    return (
        is_final(error)
        or isinstance(error, _OF_THE_PROGRAM)
        or not isinstance(error, Exception)
        or _is_refused_for_good(error)
    )


def is_of_the_program(error: BaseException) -> bool:
    """Whether the program or its surroundings are wrong, so that every input would fail."""
    return isinstance(error, (*_OF_THE_PROGRAM, ReplayMismatch, CallLogFailed))


def _is_refused_for_good(error: Any) -> bool:
    """By the model, or by a status such as 401 or 403, which our own errors have and those of most clients."""
    if isinstance(error, ModelRefused):
        return True
    status: Any = getattr(error, "status_code", None)
    waits = getattr(error, "retry_after", None) is not None
    return isinstance(status, int) and 300 <= status < 500 and status not in _WORTH_ANOTHER_CALL and not waits
