"""What a parallelism may be, for environments and for steps."""

from __future__ import annotations

from operator import index
from typing import Any

from emberflow.errors import InvalidArgument


def checked_parallelism(given: Any) -> int:
    """The number of tasks; raises `InvalidArgument` for what is not a whole number from 1 on."""
    parallelism = _whole("parallelism", given)
    if parallelism < 1:
        raise InvalidArgument(f"the parallelism must be at least 1, got {parallelism}")
    return parallelism


def checked_max_parallelism(given: Any) -> int:
    """The same for the highest number of tasks, which has an end."""
    parallelism = _whole("maximum parallelism", given)
    if not 1 <= parallelism <= 32768:
        raise InvalidArgument(f"the maximum parallelism must be between 1 and 32768, got {parallelism}")
    return parallelism


def _whole(what: str, given: Any) -> int:
    try:
        return index(given)
    except TypeError:
        raise InvalidArgument(f"the {what} must be a whole number, not {given!r}") from None
