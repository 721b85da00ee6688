"""Asynchronous calls: in whatever order they end, nothing is lost and no watermark is overtaken.

Every step is compared with a model that examines all records again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.streams import AsyncDataStream
from emberflow.testing import Emitted, OperatorHarness


class CallsByHand:
    """Calls end when the test says so."""

    def __init__(self) -> None:
        self.open: list[tuple[int, Callable[[], None]]] = []
        self._started = 0

    def start(
        self,
        limiter: str,
        capacity: int,
        call: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        number = self._started
        self._started += 1
        self.open.append((number, lambda: done([number], None)))


async def never(value: Any) -> Any:
    raise AssertionError("the test ends calls by hand")


def build(ordered: bool) -> Callable[[Any], Any]:
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    return lambda stream: wait(stream, never, timedelta(seconds=1), 1000)


class Model:
    """Slow and obvious: after every step, examines all records from the first on for results that may be emitted."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._records: list[tuple[int, int]] = []
        """(number, watermark in force before it), in order of arrival"""
        self._done: list[int] = []
        self.left: list[int] = []

    def arrives(self, number: int, watermark: int) -> None:
        self._records.append((number, watermark))

    def ends(self, number: int) -> None:
        self._done.append(number)
        waiting = list(self._records)
        while waiting:
            watermark = waiting[0][1]
            # Records between two watermarks; if order is preserved, each record separately.
            group = waiting[:1] if self._ordered else [item for item in waiting if item[1] == watermark]
            waiting = waiting[len(group) :]
            numbers = [number for number, _ in group]
            self.left += [item for item in self._done if item in numbers and item not in self.left]
            if not all(number in self._done for number in numbers):
                return


@settings(max_examples=300, deadline=None)
@given(
    ordered=st.booleans(),
    batch=st.booleans(),
    stamps=st.lists(st.integers(0, 20), max_size=15),
    data=st.data(),
)
def test_calls_may_end_in_any_order(
    ordered: bool, batch: bool, stamps: list[int], data: st.DataObject
) -> None:
    calls = CallsByHand()
    harness = OperatorHarness(build(ordered), calls=calls, batch=batch)  # pyright: ignore[reportArgumentType]
    model = Model(ordered)
    highest, sent = -1, 0
    before: list[int] = []
    while sent < len(stamps) or calls.open:
        if sent < len(stamps) and (not calls.open or data.draw(st.booleans())):
            size = data.draw(st.integers(1, len(stamps) - sent))
            part = stamps[sent : sent + size]
            marks: list[int] = []
            for number, stamp in enumerate(part, sent):
                marks.append(highest - 3)
                model.arrives(number, MIN_WATERMARK if batch else highest - 3)
                highest = max(highest, stamp)
            before += marks
            # As from an upstream step: `send` is a source, which has no watermarks between its records.
            harness.stage.entry.batch(Batch(list(range(sent, sent + size)), part, marks))
            harness.stage.entry.watermark(highest - 3)
            sent += size
        else:
            number, end = calls.open.pop(data.draw(st.integers(0, len(calls.open) - 1)))
            end()
            model.ends(number)
        assert harness.values == model.left
    harness.end()
    assert sorted(harness.values) == list(range(len(stamps)))
    assert harness.log[-1] == MAX_WATERMARK
    current = MIN_WATERMARK
    for item in harness.log:
        mark = item if isinstance(item, int) else item.watermark
        if mark is not None:
            assert mark >= current, "the watermark regressed"
            current = mark
        if isinstance(item, Emitted):
            assert item.timestamp == stamps[item.value]
            # Exactly the watermark after which it arrived: it has neither overtaken one nor been overtaken.
            assert current == (MIN_WATERMARK if batch else before[item.value])
