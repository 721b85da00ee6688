"""Scenarios that a host is known not to pass, as data.

A gap is strict: a scenario that passes in spite of it fails its test, so that the table never promises less than
the code does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """`row` is the id in the feature table."""

    row: str
    reason: str
    raises: type[BaseException] | None = None
    """What the scenario must end with there; None: anything."""


GAPS: dict[tuple[str, str], Gap] = {}
"""(test function, host) -> why it does not pass there."""
