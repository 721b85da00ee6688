"""The interval join against nested loops over the whole input, for any split into batches and any crash point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.operators.scope import Scope
from emberflow.state import entry as entries
from emberflow.streams import DataStream, OutputTag, ProcessJoinFunction
from emberflow.testing import Emitted, OperatorHarness

LATE = OutputTag("left late"), OutputTag("right late")
UNMATCHED = OutputTag("left unmatched"), OutputTag("right unmatched")
FIRST, LAST = MIN_WATERMARK + 1, MAX_WATERMARK
"""The smallest and the largest timestamp that a record can have."""


@dataclass(frozen=True)
class Sent:
    """One record on its way, and its input's watermark before and after it."""

    key: Any
    number: int
    side: int
    stamp: int
    before: int
    after: int

    @property
    def value(self) -> tuple[Any, int]:
        return self.key, self.number


@dataclass(frozen=True)
class Bounds:
    lower: int
    upper: int
    includes_lower: bool = True
    includes_upper: bool = True

    @property
    def empty(self) -> bool:
        return self.lower + (not self.includes_lower) > self.upper - (not self.includes_upper)

    def hold(self, left: Sent, right: Sent) -> bool:
        """As the documentation says it."""
        above = right.stamp - left.stamp - self.lower
        below = left.stamp + self.upper - right.stamp
        return (above >= 0 if self.includes_lower else above > 0) and (
            below >= 0 if self.includes_upper else below > 0
        )


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    lower = draw(st.integers(-40, 40))
    upper = draw(st.integers(lower, lower + 60))
    found = Bounds(lower, upper, draw(st.booleans()), draw(st.booleans()))
    return Bounds(lower, upper) if found.empty else found


stamps = st.integers(0, 60) | st.sampled_from([FIRST, FIRST + 1, -7, LAST - 1, LAST])
keys = st.sampled_from(["a", "b", None, 1])


@st.composite
def inputs(draw: st.DrawFn, max_delay: int = 20) -> list[Sent]:
    """Out of order by more than the delay at times: some records are late."""
    delay = draw(st.integers(0, max_delay))
    highest: list[int | None] = [None, None]
    sent: list[Sent] = []
    for number, (key, side, stamp) in enumerate(
        draw(st.lists(st.tuples(keys, st.integers(0, 1), stamps), max_size=25))
    ):
        seen = highest[side]
        top = stamp if seen is None else max(seen, stamp)
        before = MIN_WATERMARK if seen is None else max(MIN_WATERMARK, seen - delay - 1)
        highest[side] = top
        sent.append(Sent(key, number, side, stamp, before, max(MIN_WATERMARK, top - delay - 1)))
    return sent


def expected(sent: list[Sent], interval: Bounds) -> dict[str, list[Any]]:
    """Nested loops over everything that was not late."""
    marks, merged = [MIN_WATERMARK, MIN_WATERMARK], MIN_WATERMARK
    in_time: list[Sent] = []
    late: list[list[Any]] = [[], []]
    for item in sent:
        marks[item.side] = max(marks[item.side], item.before)
        merged = max(merged, min(marks))
        if item.stamp < merged:
            late[item.side].append(item.value)
        else:
            in_time.append(item)
        marks[item.side] = max(marks[item.side], item.after)
        merged = max(merged, min(marks))
    pairs = [
        (left, right)
        for left in in_time
        for right in in_time
        if (left.side, right.side) == (0, 1) and left.key == right.key and interval.hold(left, right)
    ]
    partners = {item.number for pair in pairs for item in pair}
    alone = [item for item in in_time if item.number not in partners]
    return {
        "pairs": sorted((left.number, right.number, max(left.stamp, right.stamp)) for left, right in pairs),
        "left late": late[0],
        "right late": late[1],
        "left unmatched": sorted(item.number for item in alone if item.side == 0),
        "right unmatched": sorted(item.number for item in alone if item.side == 1),
    }


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        assert left[0] == right[0]
        assert ctx.get_timestamp() == max(ctx.get_left_timestamp(), ctx.get_right_timestamp())
        yield left[1], right[1], ctx.get_timestamp()


def harness(
    interval: Bounds, *, outer: bool, restore: bytes | None = None, batch: bool = False
) -> OperatorHarness:
    def build(left: DataStream[Any], right: DataStream[Any]) -> dict[str, DataStream[Any]]:
        joined = (
            left.key_by(lambda value: value[0])
            .interval_join(right.key_by(lambda value: value[0]))
            .between(interval.lower, interval.upper)
            .side_output_left_late_data(LATE[0])
            .side_output_right_late_data(LATE[1])
        )
        if not interval.includes_lower:
            joined.lower_bound_exclusive()
        if not interval.includes_upper:
            joined.upper_bound_exclusive()
        if outer:
            joined.side_output_left_unmatched(UNMATCHED[0]).side_output_right_unmatched(UNMATCHED[1])
        pairs = joined.process(Pairs())
        return {"pairs": pairs} | {
            tag.tag_id: pairs.get_side_output(tag) for tag in (*LATE, *(UNMATCHED if outer else ()))
        }

    return OperatorHarness(build, inputs=2, restore=restore, batch=batch)


def batches(sent: list[Sent], cuts: set[int]) -> list[list[Sent]]:
    """A new one at every cut and wherever the input changes."""
    found: list[list[Sent]] = []
    for index, item in enumerate(sent):
        if found and found[-1][-1].side == item.side and index not in cuts:
            found[-1].append(item)
        else:
            found.append([item])
    return found


class Store:
    """Pages in a dictionary."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self._next = 0

    def get_page(self, number: int) -> bytes | None:
        return self.pages.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        chosen = self.reserve_pages(1) if number is None else number
        self.pages[chosen] = data
        return chosen

    def remove_page(self, number: int) -> None:
        self.pages.pop(number, None)

    def reserve_pages(self, count: int) -> int:
        self._next += count
        return self._next - count

    def store(self, scope: Scope | None) -> None:
        """Everything that may be on pages goes there, however small it is."""
        assert scope is not None
        scope.flush(self)
        with patch.object(entries, "_FEW_ITEMS", 1), patch.object(entries, "_INLINE_BYTES", 1):
            for entry in scope.entries.values():
                entry.write_pages(self, scope.pageable)

    def bind(self, scope: Scope | None) -> None:
        assert scope is not None
        for entry in scope.entries.values():
            entry.bind_pages(self)


def run(
    interval: Bounds,
    sent: list[Sent],
    cuts: set[int],
    crashes: set[int],
    *,
    outer: bool,
    pages: Store | None = None,
) -> tuple[dict[str, list[Emitted]], OperatorHarness]:
    running, out = harness(interval, outer=outer), dict[str, list[Emitted]]()

    def collect() -> None:
        for name, outlet in running._outlets.by_name.items():
            out.setdefault(name, []).extend(outlet.records)

    for number, part in enumerate(batches(sent, cuts)):
        if pages is not None:
            pages.store(running.scope)
        if number in crashes:
            stored = running.snapshot()
            collect()
            running = harness(interval, outer=outer, restore=stored)
            if pages is not None:
                pages.bind(running.scope)
        send(running, part)
    running.end()
    collect()
    return out, running


def sorted_out(out: dict[str, list[Emitted]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, records in out.items():
        if name == "pairs":
            found[name] = sorted(item.value for item in records)
            assert all(item.timestamp == item.value[2] for item in records)
        elif "late" in name:
            found[name] = [item.value for item in records]
        else:
            found[name] = sorted(item.value[1] for item in records)
    return found


positions = st.sets(st.integers(0, 25), max_size=6)


@settings(max_examples=400, deadline=None)
@given(interval=bounds(), sent=inputs(), cuts=positions, crashes=positions, outer=st.booleans())
@example(
    # The last partner has the time of the watermark, which is not late yet.
    Bounds(0, 10),
    [
        Sent("a", 0, 0, 0, MIN_WATERMARK, 10),
        Sent("b", 1, 1, 0, MIN_WATERMARK, 10),
        Sent("a", 2, 1, 10, 10, 10),
    ],
    set(),
    set(),
    False,
)
def test_every_pair_that_is_not_late(
    interval: Bounds, sent: list[Sent], cuts: set[int], crashes: set[int], outer: bool
) -> None:
    out, after = run(interval, sent, cuts, crashes, outer=outer)
    wanted = expected(sent, interval)
    assert sorted_out(out) == {
        name: found for name, found in wanted.items() if outer or "unmatched" not in name
    }
    assert after.scope is not None
    assert after.scope.entries == {}, "state is left behind"
    for name, records in out.items():
        if "late" not in name:
            assert all(
                item.timestamp is not None and item.timestamp >= (item.watermark or MIN_WATERMARK)
                for item in records
            )


@settings(max_examples=150, deadline=None)
@given(interval=bounds(), sent=inputs(), cuts=positions, crashes=positions, outer=st.booleans())
def test_records_on_pages_are_joined_alike(
    interval: Bounds, sent: list[Sent], cuts: set[int], crashes: set[int], outer: bool
) -> None:
    pages = Store()
    out, after = run(interval, sent, cuts, crashes, outer=outer, pages=pages)
    wanted = expected(sent, interval)
    assert sorted_out(out) == {
        name: found for name, found in wanted.items() if outer or "unmatched" not in name
    }
    pages.store(after.scope)
    assert pages.pages == {}, "pages are left behind"


@settings(max_examples=150, deadline=None)
@given(interval=bounds(), sent=inputs(), outer=st.booleans())
def test_a_batch_is_joined_as_a_whole(interval: Bounds, sent: list[Sent], outer: bool) -> None:
    """All of one input, then all of the other, as Spark's batch mode delivers them; nothing is late."""
    running = harness(interval, outer=outer, batch=True)
    for side in (0, 1):
        part = [item for item in sent if item.side == side]
        running.send([item.value for item in part], [item.stamp for item in part], into=side)
    running.end()
    out = {name: outlet.records for name, outlet in running._outlets.by_name.items()}
    whole = [
        Sent(item.key, item.number, item.side, item.stamp, MIN_WATERMARK, MIN_WATERMARK) for item in sent
    ]
    wanted = expected(whole, interval)
    assert sorted_out(out) == {
        name: found for name, found in wanted.items() if outer or "unmatched" not in name
    }


@settings(max_examples=100, deadline=None)
@given(before=bounds(), after=bounds(), sent=inputs(), cut=st.integers(0, 25), outer=st.booleans())
def test_a_program_with_another_interval_goes_on_with_the_state(
    before: Bounds, after: Bounds, sent: list[Sent], cut: int, outer: bool
) -> None:
    """No stored record is lost too early or kept forever. Pairs of the new part with the old part are those of the new
    interval, as far as the earlier program has kept the records."""
    running = harness(before, outer=outer)
    for part in batches(sent[:cut], set()):
        send(running, part)
    if running.scope is None:
        return
    kept = {
        kept[1][1]
        for entry in running.scope.entries.values()
        for name in entry
        for bucket in entry[name].values()
        for kept in bucket
    }
    running = harness(after, outer=outer, restore=running.snapshot())
    for part in batches(sent[cut:], set()):
        send(running, part)
    running.end()
    assert running.scope is not None
    assert running.scope.entries == {}
    wanted = expected(sent, after)["pairs"]
    new = [
        pair for pair in wanted if (min(pair[:2]) in kept and max(pair[:2]) >= cut) or min(pair[:2]) >= cut
    ]
    found = sorted(item.value for item in running.outlet("pairs").records)
    assert found == sorted(new)


def send(running: OperatorHarness, part: list[Sent]) -> None:
    running.send(
        [item.value for item in part],
        [item.stamp for item in part],
        [item.before for item in part],
        watermark=part[-1].after,
        into=part[0].side,
    )


@pytest.mark.slow
def test_memory_is_bounded_by_the_interval() -> None:
    """A million records of one key would be kept without it."""
    running, highest = harness(Bounds(-50, 50), outer=False), 0
    for start in range(0, 20_000, 100):
        for side in (0, 1):
            times = list(range(start, start + 100))
            running.send(
                [("a", number) for number in times],
                times,
                [number - 1 for number in times],
                watermark=times[-1] - 1,
                into=side,
            )
        assert running.scope is not None
        held = sum(
            len(bucket)
            for entry in running.scope.entries.values()
            for state in entry.values()
            for bucket in state.values()
        )
        highest = max(highest, held)
        assert len(running.scope.event_timers) < 100
    # The interval, a batch that the other input is behind, and less than one bucket more.
    assert highest <= 2 * (50 + 100 + 101 // 16 + 1)


def test_late_records_without_a_side_output_are_counted() -> None:
    def build(left: DataStream[Any], right: DataStream[Any]) -> DataStream[Any]:
        return (
            left.key_by(lambda _: 0).interval_join(right.key_by(lambda _: 0)).between(0, 5).process(Pairs())
        )

    running = OperatorHarness(build, inputs=2)
    for side in (0, 1):
        running.watermark(10, into=side)
    running.send([("a", 1), ("a", 2)], [9, 10], into=0)
    assert running.stage.head is not None
    assert [running.stage.head.take_late(), running.stage.head.take_late()] == [1, 0]
