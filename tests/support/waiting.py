"""Waits for something that must happen by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG_GUARD_S = 500


def until(condition: Callable[[], T]) -> T:
    """Returns the first true result of the condition; the limit only keeps a broken test from hanging."""
    deadline_s = time.monotonic() + HANG_GUARD_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.01)
    return found
