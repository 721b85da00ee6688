"""Open windows as an engine stores them, one program per kind.

`python -c 'from tests.golden.stored_windows import *; write("FILE")'` writes them with the version that is imported:
`v2/windows.json` is from before windows had panes, sessions and triggers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from emberflow import streams
from emberflow.streams import DataStream, ReduceFunction, SlidingEventTimeWindows, TumblingEventTimeWindows
from emberflow.testing import OperatorHarness

RECORDS = [("a", 1), ("a", 8), ("b", 3), ("a", 6), ("a", 19), ("b", 12)]
WATERMARK = 7

Kind = Callable[[DataStream[Any]], DataStream[Any]]


def first(value: Any) -> Any:
    return value[0]


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


class Sum(ReduceFunction[Any]):
    """Lets sliding windows share panes, as all reduce functions did in the versions that wrote the files."""

    mergeable = True

    def reduce(self, value1: Any, value2: Any) -> Any:
        return add(value1, value2)


def shown(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, context.window().start, context.window().end, [value for _, value in elements]


def kinds() -> dict[str, Kind]:
    """Those that the imported version has."""
    found: dict[str, Kind] = {
        "tumbling": lambda stream: (
            stream.key_by(first).window(TumblingEventTimeWindows.of(10)).process(shown)
        ),
        "sliding": lambda stream: (
            stream.key_by(first).window(SlidingEventTimeWindows.of(20, 5)).reduce(Sum(), shown)
        ),
    }
    if hasattr(streams, "CountTrigger"):
        sessions = streams.EventTimeSessionWindows.with_gap(5)
        found["sessions"] = lambda stream: stream.key_by(first).window(sessions).process(shown)
        found["triggered"] = lambda stream: (
            stream.key_by(first)
            .window(sessions)
            .allowed_lateness(5)
            .trigger(streams.CountTrigger.of(2))
            .process(shown)
        )
        found["count"] = lambda stream: (
            stream.key_by(first)
            .count_window(3)
            .process(lambda key, context, elements: [(key, context.window().id, [v for _, v in elements])])
        )
    return found


def sent(kind: Kind) -> OperatorHarness:
    """A job in the middle of its input."""
    harness = OperatorHarness(kind)
    harness.send(RECORDS, [stamp for _, stamp in RECORDS], watermark=WATERMARK)
    return harness


def write(path: str | Path) -> None:
    made = {name: base64.b64encode(sent(kind).snapshot()).decode() for name, kind in kinds().items()}
    Path(path).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in json.loads(path.read_text()).items()}
