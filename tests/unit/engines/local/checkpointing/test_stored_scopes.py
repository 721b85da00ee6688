"""What a subtask continues with when the parallelism has changed."""

from __future__ import annotations

from emberflow.engines.local.checkpointing.stored_scopes import share
from emberflow.events.batch import MAX_WATERMARK
from emberflow.operators.scope import SavedScope


def test_an_input_that_had_ended_stays_ended_with_other_tasks() -> None:
    """Its tasks have nothing left to send, so the job would wait for them forever."""
    ended = [((3, task), MAX_WATERMARK, 0) for task in range(3)]
    stored = [SavedScope(watermark=6, channels=[*ended, ((4, 0), 9, 0), ((4, 1), 5, 0), ((5, 0), 6, 0)])]
    found = share(stored, lambda key: True, {(3, 0), (4, 0), (5, 0), (7, 0)})
    marks = {channel: mark for channel, mark, _ in found.channels}
    assert marks == {(3, 0): MAX_WATERMARK, (4, 0): 6, (5, 0): 6, (7, 0): 6}
    assert not found.ended
