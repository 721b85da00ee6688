"""Lets our errors through Spark's stack traces: the driver finds them again by their marker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

from emberflow.errors import EmberflowError, to_marker


def carries_errors(function: Any) -> Any:
    """The function, its errors marked; also those that its iterator raises later."""

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except EmberflowError as error:
            raise RuntimeError(f"{error}\n{to_marker(error)}") from error
        return _guarded_iterator(result) if isinstance(result, Iterator) else result

    return guarded


def _guarded_iterator(items: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from items
    except EmberflowError as error:
        raise RuntimeError(f"{error}\n{to_marker(error)}") from error
