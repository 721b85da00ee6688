"""Scenarios that a host is known not to pass, as data.

A gap is strict: a scenario that passes in spite of it fails its test, so that the table never claims less than the code
does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """`row` is the id in the feature table."""

    row: str
    reason: str
    raises: type[BaseException] | None = None
    """What the scenario must raise there; None: anything."""


_IN_MEMORY = Gap(row="B1", reason="values stay Python objects between local tasks, so a lock can be sent")
_NOT_STORED = Gap(
    row="B8", reason="a batch job keeps state in memory while it works on a key and never stores it"
)

GAPS: dict[tuple[str, str], Gap] = {
    ("test_a_value_that_cannot_be_serialised", "local"): _IN_MEMORY,
    ("test_a_value_that_cannot_be_serialised", "local-batch"): _IN_MEMORY,
    ("test_a_value_that_cannot_be_serialised", "local-sqlite"): _IN_MEMORY,
    ("test_a_value_that_cannot_be_serialised", "local-2"): _IN_MEMORY,
    ("test_state_that_cannot_be_serialised", "spark-batch"): _NOT_STORED,
}
"""(test function, host) -> why it does not pass there."""
