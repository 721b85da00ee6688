"""The state of a key group as Spark's state store holds it: an agent with a run in flight, pages and cold buckets.

`python -c 'from tests.golden.group_state import *; write("FILE")'` writes it with the version that is imported.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from emberflow.event_time.clock import FixedClock
from emberflow.events.batch import Batch
from emberflow.operators.group_layout import GroupLayout
from tests.support.stored_agent import opened

CHANNELS = [(0, 0)]
KEYS = [f"key-{number}" for number in range(12)]
_HOT_BYTES = 1_500


class Cold:
    """Buckets and pages in memory."""

    def __init__(self, held: dict[int, bytes] | None = None) -> None:
        self.held = held or {}

    def get(self, bucket: int) -> bytes | None:
        return self.held.get(bucket)

    def put(self, bucket: int, data: bytes) -> None:
        self.held[bucket] = data

    def remove(self, bucket: int) -> None:
        self.held.pop(bucket, None)


def layout_of(hot: bytes | None, cold: Cold) -> GroupLayout:
    return GroupLayout(hot, cold, "keeper", _HOT_BYTES)


def scope_of(layout: GroupLayout) -> Any:
    return layout.scope(CHANNELS, {}, FixedClock(7), lambda key: True)


def write(file: str) -> None:
    cold = Cold()
    layout = layout_of(None, cold)
    scope = scope_of(layout)
    operator, calls, _ = opened(scope)
    for key in KEYS:
        operator.receive(0, (0, 0), Batch([1], None, None, [key]), None)
    calls.finish()
    # Two batches: the first one moves keys to cold buckets, the second leaves a run in flight and an input behind it.
    hot = layout.commit(scope)
    operator.receive(0, (0, 0), Batch([2, 3], None, None, ["key-0", "key-0"]), 50)
    operator.before_save()
    hot = layout.commit(scope) or hot
    operator.close()
    assert hot is not None
    assert cold.held
    Path(file).write_text(as_text(hot, cold))


def as_text(hot: bytes, cold: Cold) -> str:
    stored = {"hot": _text(hot), "cold": {number: _text(data) for number, data in cold.held.items()}}
    return json.dumps(stored, indent=1)


def read(file: Path) -> tuple[bytes, Cold]:
    stored = json.loads(file.read_text())
    cold = {int(number): base64.b64decode(data) for number, data in stored["cold"].items()}
    return base64.b64decode(stored["hot"]), Cold(cold)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
