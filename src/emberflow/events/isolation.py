"""Whether steps copy the mutable records that they emit: always, unless a program enables object reuse.

The only place that decides. A step's operator and its output have one of the two `Isolation`s; see `copies.py` for the
copies themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from emberflow.events.copies import copied, extend_isolated, is_changeable, isolated, own


@dataclass(frozen=True, slots=True)
class Isolation:
    """What becomes of a record that somebody else may hold as well."""

    own: Callable[[Any], Any]
    """A function's result, whose class is not in `UNCHANGEABLE`, as it is emitted."""
    extend: Callable[[list[Any], Iterable[Any]], None]
    """Appends a function's results to what is emitted."""
    for_another: Callable[[Any], list[Any]]
    """The records of a batch for a further receiver."""
    needs_copies: Callable[[Any], bool]
    """Whether a record that is added to several windows is copied for each."""
    copied: Callable[[Any], Any]
    """An element of a window, as a function is given it while the window keeps it."""


def _same(value: Any) -> Any:
    return value


def _never(value: Any) -> bool:
    return False


COPIES = Isolation(own, extend_isolated, isolated, is_changeable, copied)
"""What a function does to its records and results affects nobody else."""

REUSED_OBJECTS = Isolation(_same, list[Any].extend, _same, _never, _same)
"""Records are passed on as they are: functions must not change what they received or emitted."""
