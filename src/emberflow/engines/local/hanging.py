"""Why a local job does not stop: which step's code its thread is in, or which step's calls ignore their cancellation. Also
an event loop that ends in spite of such calls."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine, Iterable
from types import FrameType
from typing import Any, TypeVar

from emberflow.operators.operator import Operator
from emberflow.plan.graphs.job_graph import JobGraph

T = TypeVar("T")
_log = logging.getLogger("emberflow")


def step_of_thread(thread_id: int | None) -> str:
    """The step whose code a thread is running, and the line; empty if there is none."""
    innermost = frame = sys._current_frames().get(thread_id or 0)
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), Operator):
            step = frame.f_locals["self"].step
            where = f" ({step.location})" if step.location else ""
            return f"step {step.name!r}{where} does not return, at {_line(innermost)}"
        frame = frame.f_back
    return ""


def steps_with_calls(graph: JobGraph, uids: Iterable[str]) -> str:
    """The steps that still have calls in flight; empty if there are none."""
    nodes = {node.uid: node for node in graph.stream_graph.nodes}
    names = sorted({repr(nodes[uid].name) if uid in nodes else repr(uid) for uid in uids})
    return f"calls of step {', '.join(names)} continue although they were canceled" if names else ""


def run_to_its_end(main: Coroutine[Any, Any, T], patience_s: float) -> T:
    """Like `asyncio.run`, but abandons a coroutine that swallows its cancellation instead of waiting for it forever."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    left = set[asyncio.Task[Any]]()
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            _, left = loop.run_until_complete(asyncio.wait(left, timeout=patience_s))
        asyncio.set_event_loop(None)
        if not left:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


def _line(frame: FrameType | None) -> str:
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
