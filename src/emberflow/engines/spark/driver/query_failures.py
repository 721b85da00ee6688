"""Translates Spark's failures into the user's terms."""

from __future__ import annotations

from emberflow.errors import EmberflowError, EngineFailed, WorkerLost, from_marker

_WORKER_LOST = (
    "Python worker exited unexpectedly",
    "Connection reset",
    "ExecutorLostFailure",
    "exited due to signal",
)


def is_worker_loss(error: BaseException) -> bool:
    """Whether a process of the job died, so that the batch can be retried. A user's error is not of this kind."""
    text = str(error)
    return from_marker(text) is None and any(part in text for part in _WORKER_LOST)


def translate_failure(error: BaseException, *, show_traceback: bool) -> EmberflowError:
    """Extracts our own error from Spark's stack trace; otherwise shortens Spark's."""
    if isinstance(error, EmberflowError):
        return error
    text = str(error)
    found = from_marker(text)
    if found is None:
        found = _foreign(text)
    if show_traceback:
        found.committed = f"{found.committed}\n\nSpark's own report:\n{text}".strip()
    return found


def _foreign(text: str) -> EmberflowError:
    if any(part in text for part in _WORKER_LOST):
        return WorkerLost(
            "a Python worker died repeatedly while it processed a batch",
            cause=_first_line(text),
            way_out="look for a function that uses too much memory or kills its process; --traceback shows Spark's report",
            committed="the batch was not committed; running the program again repeats it",
        )
    python = [line.strip() for line in text.splitlines() if _looks_like_exception(line)]
    return EngineFailed(
        "Spark could not run the job",
        cause=python[-1] if python else _first_line(text),
        way_out="--traceback shows Spark's own report",
        committed="what was committed before stays committed",
    )


def _looks_like_exception(line: str) -> bool:
    head = line.strip().split(":")[0]
    return head.endswith(("Error", "Exception")) and " " not in head


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")[:300]
