"""Rarer garbage collections while records are processed.

Python's collector starts after every 700 new containers, and looks at all objects of the process from time to time. A job
creates millions of short-lived containers that reference counting frees, so nearly all of these runs find nothing; with
thousands of calls in flight they take a large part of the processor time. See docs/decisions/0026-garbage-collection.md.

Called by both engines. What the program has set itself is respected: a collector that is switched off, or that runs more
rarely, is left alone.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

NEW_OBJECTS = 50_000
"""New containers between two runs of the collector; Python's default is 700."""

_lock = threading.Lock()
_jobs = 0
_before: tuple[int, int, int] | None = None
"""The thresholds to be restored; None if they were not changed."""


def collect_rarely() -> bool:
    """For a process that does nothing else. Returns whether anything was changed."""
    young, middle, old = gc.get_threshold()
    if not gc.isenabled() or young == 0 or young >= NEW_OBJECTS:
        return False
    gc.set_threshold(NEW_OBJECTS, middle, old)
    return True


@contextmanager
def rare_collections() -> Generator[None]:
    """For a job in the process of its program: the thresholds are restored when the last job has ended."""
    global _jobs, _before
    with _lock:
        _jobs += 1
        if _jobs == 1:
            before = gc.get_threshold()
            _before = before if collect_rarely() else None
    try:
        yield
    finally:
        with _lock:
            _jobs -= 1
            # A program that has set thresholds in the meantime keeps them.
            if _jobs == 0 and _before is not None and gc.get_threshold()[0] == NEW_OBJECTS:
                gc.set_threshold(*_before)
