"""Valid timestamps, watermarks and timer times: 64-bit milliseconds, as in Flink.

−2**63 means "no timestamp". 2**63−1 as a watermark marks the end of the input, so no generator may emit it. Used
wherever user code or a source provides a time; within the core, times are plain ints in range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from numbers import Real
from operator import index
from typing import Any, SupportsIndex

from emberflow.errors import shorten
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK

NO_TIMESTAMP = MIN_WATERMARK
MAX_TIMESTAMP = MAX_WATERMARK

_INT = {int}


def to_timestamp(value: Any, what: str) -> int:
    """Milliseconds of an int, of another integer type such as numpy's, or of a finite float, truncated to an integer.
    Raises TypeError or ValueError, whose message begins with `what`."""
    if value.__class__ is int:
        number: int = value
    elif isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise TypeError(
            f"{what} must be milliseconds since 1970, an integer, not {shorten(value)}{_hint(value)}"
        )
    elif value in (float("inf"), float("-inf")):
        raise _out_of_range(value, what)
    else:
        number = index(value) if isinstance(value, SupportsIndex) else int(float(value))
    if NO_TIMESTAMP <= number <= MAX_TIMESTAMP:
        return number
    raise _out_of_range(number, what)


def to_watermark(value: Any) -> int:
    """Validates a watermark emitted by a generator."""
    watermark = to_timestamp(value, "a watermark")
    if watermark == MAX_WATERMARK:
        raise ValueError(
            "a generator must not emit the watermark 2**63-1, which ends the input; the highest is 2**63-2"
        )
    return watermark


def checked(
    stamps: Sequence[Any], what: str, reject: Callable[[int, Exception], BaseException]
) -> Sequence[int | None]:
    """A column of timestamps, all in range, with None instead of NO_TIMESTAMP. For the first invalid one, raises what
    `reject` returns for its position and error. A valid column takes three passes in C."""
    if set(map(type, stamps)) == _INT and min(stamps) > NO_TIMESTAMP and max(stamps) <= MAX_TIMESTAMP:
        return stamps
    found: list[int | None] = []
    for position, stamp in enumerate(stamps):
        try:
            number = to_timestamp(stamp, what)
        except (TypeError, ValueError) as error:
            raise reject(position, error) from error
        found.append(None if number == NO_TIMESTAMP else number)
    return found


def _out_of_range(value: object, what: str) -> ValueError:
    return ValueError(
        f"{what} must be a 64-bit integer, from -2**63 to 2**63-1 milliseconds, not {shorten(value)}"
    )


def _hint(value: object) -> str:
    return "; for a datetime use int(value.timestamp() * 1000)" if isinstance(value, datetime) else ""
