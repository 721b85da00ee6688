"""Asynchronous calls: whatever the order in which they end, nothing is lost and no watermark is overtaken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK
from emberflow.streams import AsyncDataStream
from emberflow.testing import Emitted, OperatorHarness


class CallsByHand:
    """Calls end when the test says so."""

    def __init__(self) -> None:
        self.open: list[Callable[[], None]] = []
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
        self.open.append(lambda: done([number], None))


async def never(value: Any) -> Any:
    raise AssertionError("the test ends calls by hand")


def build(ordered: bool) -> Callable[[Any], Any]:
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    return lambda stream: wait(stream, never, timedelta(seconds=1), 1000)


@settings(max_examples=150, deadline=None)
@given(ordered=st.booleans(), stamps=st.lists(st.integers(0, 20), max_size=15), data=st.data())
def test_calls_may_end_in_any_order(ordered: bool, stamps: list[int], data: st.DataObject) -> None:
    calls = CallsByHand()
    harness = OperatorHarness(build(ordered), calls=calls)  # pyright: ignore[reportArgumentType]
    highest, sent = -1, 0
    while sent < len(stamps) or calls.open:
        if sent < len(stamps) and (not calls.open or data.draw(st.booleans())):
            size = data.draw(st.integers(1, len(stamps) - sent))
            part = stamps[sent : sent + size]
            marks: list[int] = []
            for stamp in part:
                marks.append(highest - 3)
                highest = max(highest, stamp)
            harness.send(list(range(sent, sent + size)), part, marks, watermark=highest - 3)
            sent += size
        else:
            calls.open.pop(data.draw(st.integers(0, len(calls.open) - 1)))()
    harness.end()
    log = harness.log
    values = [item.value for item in log if isinstance(item, Emitted)]
    assert sorted(values) == list(range(len(stamps)))
    if ordered:
        assert values == sorted(values)
    assert log[-1] == MAX_WATERMARK
    in_time(log, stamps)


def in_time(log: list[Any], stamps: list[int]) -> None:
    """A record that was not late before its call is not late behind it."""
    late_before: dict[int, bool] = {}
    highest = -1
    for number, stamp in enumerate(stamps):
        late_before[number] = stamp <= highest - 3
        highest = max(highest, stamp)
    current = -(2**63)
    for item in log:
        mark = item if isinstance(item, int) else item.watermark
        if mark is not None:
            assert mark >= current, "the watermark went back"
            current = mark
        if isinstance(item, Emitted) and not late_before[item.value]:
            assert item.timestamp is not None
            assert item.timestamp > current
