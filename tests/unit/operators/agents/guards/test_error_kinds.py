"""What errors mean for retries, for models that asked for a tool, and for requests that may be ignored."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import (
    BudgetExceeded,
    CallLogFailed,
    InvalidArgument,
    ModelFailed,
    ModelRefused,
    PackageMissing,
    ReplayMismatch,
    ResourceFailed,
    StepLimitReached,
    ToolFailed,
    UnknownResource,
)
from emberflow.operators.agents.guards.error_kinds import (
    ends_the_action,
    is_final,
    is_of_the_program,
    is_permanent,
    log_failure,
)


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def during(error: Exception, other: BaseException) -> Exception:
    error.__context__ = other
    return error


LOST = CallLogFailed("the disk is full")
LOG_FAILURES = [
    LOST,
    caused(ValueError("no answer"), LOST),
    during(ValueError("no answer"), caused(KeyError("k"), LOST)),
    ExceptionGroup("several", [ValueError("a"), LOST]),
]


@pytest.mark.parametrize("error", LOG_FAILURES)
def test_a_failure_of_the_log_is_found_however_it_is_wrapped(error: Exception) -> None:
    assert log_failure(error) is LOST
    assert ends_the_action(error)
    assert is_final(error)
    assert is_permanent(error)


class OfAClient(Exception):
    def __init__(self, status: Any) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


def failed(status: int | None, retry_after: float | None = None) -> ModelFailed:
    return ModelFailed("the service", status_code=status, retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "ends", "final", "permanent"),
    [
        (BudgetExceeded("b"), True, True, True),
        (ReplayMismatch("r"), True, True, True),
        (StepLimitReached("s"), False, True, True),
        (KeyboardInterrupt(), True, False, True),
        (InvalidArgument("i"), False, False, True),
        (UnknownResource("u"), False, False, True),
        (PackageMissing("p"), False, False, True),
        (ModelRefused("m"), False, False, True),
        (failed(401), False, False, True),
        (failed(403), False, False, True),
        (OfAClient(400), False, False, True),
        (failed(403, retry_after=5), False, False, False),
        (failed(408), False, False, False),
        (failed(429), False, False, False),
        (failed(500), False, False, False),
        (failed(None), False, False, False),
        (OfAClient("away"), False, False, False),
        (ToolFailed("t"), False, False, False),
        (ValueError("v"), False, False, False),
    ],
    ids=lambda value: f"{value!r}" if isinstance(value, BaseException) else None,
)
def test_every_error_has_one_meaning(error: BaseException, ends: bool, final: bool, permanent: bool) -> None:
    assert (ends_the_action(error), is_final(error), is_permanent(error)) == (ends, final, permanent)


def test_mistakes_of_the_program_are_not_those_of_an_input() -> None:
    assert all(map(is_of_the_program, [InvalidArgument("i"), ResourceFailed("r"), PackageMissing("p"), LOST]))
    assert not any(map(is_of_the_program, [failed(500), ValueError("v"), ToolFailed("t")]))
