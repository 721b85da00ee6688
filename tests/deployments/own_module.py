"""A module next to the program: workers can have it only because it was shipped to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    sensor: str
    celsius: float
    at_ms: int


def warmer(a: Reading, b: Reading) -> Reading:
    return a if a.celsius >= b.celsius else b
