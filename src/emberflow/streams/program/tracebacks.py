"""Errors of emberflow as a user should see them in a traceback: their own lines, and not the library's inner ones.

`user_frames_only` decorates what the public API lets a user call. EMBERFLOW_FULL_TRACE=1 leaves tracebacks as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from emberflow import errors
from emberflow.errors import EmberflowError

P = ParamSpec("P")
T = TypeVar("T")
LIBRARY = str(Path(errors.__file__).parent) + os.sep
"""Where the files of this package are."""

_PYTHON = Path(os.__file__).parent
_INNER = (
    LIBRARY,
    str(_PYTHON / "asyncio") + os.sep,
    str(_PYTHON / "concurrent") + os.sep,
    str(_PYTHON / "threading.py"),
    str(_PYTHON / "contextlib.py"),
)
"""The library, and what it runs user code with."""


def user_frames_only(function: Callable[P, T]) -> Callable[P, T]:
    """Shortens the tracebacks of emberflow's errors that leave the function; what else they carry is not touched."""

    @wraps(function)
    def shortened(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except EmberflowError as error:
            if os.environ.get("EMBERFLOW_FULL_TRACE") or os.environ.get("EMBERFLOW_TRACEBACK"):
                raise
            _shorten(error)
            failure = error
        # Outside of the handler, which would make the error its own context. The frames above this one are the user's.
        raise failure

    return shortened


def _shorten(error: EmberflowError) -> None:
    seen = set[int]()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        current.__traceback__ = _without_library(current.__traceback__)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _without_library(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_INNER):
            kept.append(trace)
        trace = trace.tb_next
    made: TracebackType | None = None
    for item in reversed(kept):
        made = TracebackType(made, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return made
