"""How our errors leave a Spark worker.

One of our jobs finds them in Spark's stack trace by their marker. A query that the user has started (`to_dataframe`,
`with_agent`) shows Spark's error as it is, so our message must be readable in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import Enum
from functools import wraps
from typing import Any

from emberflow.errors import EmberflowError, to_marker

_HIDE = "SPARK_HIDE_TRACEBACK"
"""While it is set in a worker, Spark reports exceptions without their stack frames."""


class ErrorForm(Enum):
    """The values are the names of functions in this file."""

    MARKED = "carries_errors"
    READABLE = "readable_errors"
    TRACED = "traced_errors"


class ReadableError(Exception):
    """One of our errors, with the message that Spark shows its user."""


# What Python prints in front of the message: "emberflow: StepFailed [EF2101]: …"
ReadableError.__module__, ReadableError.__qualname__ = "builtins", "emberflow"


def carries_errors(function: Any) -> Any:
    """Wraps the function so that its errors are marked, including those that its iterator raises later."""
    return _guard(function, _marked)


def readable_errors(function: Any) -> Any:
    """Wraps the function so that only our message of its errors is shown."""
    return _guard(function, _readable)


def traced_errors(function: Any) -> Any:
    """Wraps the function so that our message is shown after the Python stack."""
    return _guard(function, lambda error: ReadableError(_for_a_query(error)))


def _marked(error: EmberflowError) -> Exception:
    return RuntimeError(f"{error}\n{to_marker(error)}")


def _readable(error: EmberflowError) -> Exception:
    # A worker that has reported an exception ends, so this does not affect other queries.
    os.environ[_HIDE] = "1"
    return ReadableError(_for_a_query(error))


def _for_a_query(error: EmberflowError) -> str:
    """Neither the command line nor our checkpoints are involved in a query that the user has started."""
    way_out = error.way_out.replace("--traceback", "EMBERFLOW_TRACEBACK=1")
    return str(type(error)(error.message, cause=error.cause, way_out=way_out))


def _guard(function: Any, translate: Callable[[EmberflowError], Exception]) -> Any:
    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except EmberflowError as error:
            raise translate(error) from error
        return _guarded_iterator(result, translate) if isinstance(result, Iterator) else result

    return guarded


def _guarded_iterator(
    items: Iterator[Any], translate: Callable[[EmberflowError], Exception]
) -> Iterator[Any]:
    try:
        yield from items
    except EmberflowError as error:
        raise translate(error) from error
