"""Watermarks behind inputs in flight, against the rule said plainly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emberflow.operators.watermarks.watermark_holds import Segment, WatermarkHolds


def test_nothing_in_flight_holds_nothing() -> None:
    holds = WatermarkHolds()
    assert holds.empty
    segment = holds.start()
    assert not holds.empty
    assert holds.finish(segment) is None
    assert holds.empty


def test_a_watermark_passes_with_the_last_input_before_it() -> None:
    holds = WatermarkHolds()
    first, second = holds.start(), holds.start()
    holds.hold(10)
    assert holds.finish(second) is None
    assert holds.finish(first) == 10
    assert holds.empty


def test_later_inputs_do_not_hold_it() -> None:
    holds = WatermarkHolds()
    first = holds.start()
    holds.hold(10)
    later = holds.start()
    assert holds.finish(first) == 10
    assert not holds.empty
    assert holds.finish(later) is None


def test_of_several_watermarks_in_a_row_the_last_counts() -> None:
    holds = WatermarkHolds()
    first = holds.start()
    for mark in (10, 20, 15, 20):
        holds.hold(mark)
    assert holds.finish(first) == 20


def test_a_later_segment_that_ends_first_waits() -> None:
    holds = WatermarkHolds()
    first = holds.start()
    holds.hold(10)
    second = holds.start()
    holds.hold(20)
    assert holds.finish(second) is None
    assert holds.finish(first) == 20
    assert holds.empty


@given(st.data())
def test_a_watermark_passes_exactly_when_all_inputs_before_it_are_finished(data: st.DataObject) -> None:
    holds = WatermarkHolds()
    open_inputs: dict[int, Segment] = {}
    marks: list[tuple[int, int]] = []
    """(watermark, inputs that came before it)"""
    started = passed = 0
    for _ in range(data.draw(st.integers(0, 30))):
        match data.draw(st.sampled_from(["start", "start", "hold", "finish"])):
            case "start":
                open_inputs[started] = holds.start()
                started += 1
            case "hold":
                mark = data.draw(st.integers(1, 30))
                if holds.empty:
                    # It passes at once, past this class.
                    passed = max(passed, mark)
                elif mark > passed:
                    holds.hold(mark)
                    marks.append((mark, started))
            case _ if open_inputs:
                number = data.draw(st.sampled_from(sorted(open_inputs)))
                mark = holds.finish(open_inputs.pop(number))
                first_open = min(open_inputs, default=started)
                free = max((mark for mark, before in marks if before <= first_open), default=0)
                # A watermark that is not above an earlier one has nothing to say.
                assert (mark or passed) == max(free, passed)
                passed = max(free, passed)
            case _:
                pass
    assert holds.empty == (not open_inputs)
