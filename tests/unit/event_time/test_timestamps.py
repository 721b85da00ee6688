"""Which values may be a timestamp, a watermark or the time of a timer."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy
import pytest

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Time, to_ms
from emberflow.event_time.timestamps import checked, to_timestamp, to_watermark

LOWEST, HIGHEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (LOWEST, LOWEST),
        (HIGHEST, HIGHEST),
        (numpy.int64(7), 7),
        (numpy.uint64(HIGHEST), HIGHEST),
        (1_700_000_000_000.9, 1_700_000_000_000),
        (-1.5, -1),
        (numpy.float32(2.5), 2),
        (Fraction(7, 2), 3),
    ],
)
def test_integers_and_floats_are_milliseconds(value: Any, expected: int) -> None:
    found = to_timestamp(value, "a timestamp")
    assert found == expected
    assert type(found) is int


@pytest.mark.parametrize("value", [HIGHEST + 1, LOWEST - 1, 10**400, 1e19, numpy.uint64(2**63), float("inf")])
def test_values_beyond_64_bits_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"a timestamp must be a 64-bit integer, from -2\*\*63 to 2\*\*63-1"):
        to_timestamp(value, "a timestamp")


@pytest.mark.parametrize(
    "value", [None, True, numpy.bool_(True), "1700000000000", b"7", float("nan"), [7], 1j, timedelta(1)]
)
def test_values_that_are_no_numbers_are_refused(value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"the time of a timer must be milliseconds since 1970, an integer, not "
    ):
        to_timestamp(value, "the time of a timer")


def test_a_datetime_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"use int\(value.timestamp\(\) \* 1000\)"):
        to_timestamp(datetime(2026, 1, 1), "a timestamp")


def test_a_huge_value_is_shown_short() -> None:
    with pytest.raises(TypeError) as caught:
        to_timestamp("x" * 10_000, "a timestamp")
    assert len(str(caught.value)) < 300


def test_the_watermark_that_ends_the_input_is_not_a_generators() -> None:
    assert to_watermark(HIGHEST - 1) == HIGHEST - 1
    with pytest.raises(ValueError, match=r"must not emit the watermark 2\*\*63-1, which ends the input"):
        to_watermark(HIGHEST)


def test_a_column_names_the_first_bad_value() -> None:
    def reject(position: int, error: Exception) -> Exception:
        return LookupError(position, str(error))

    good = [5, HIGHEST, LOWEST + 1]
    assert checked(good, "a timestamp", reject) is good
    assert checked([1, LOWEST, numpy.int32(3), 4.5], "a timestamp", reject) == [1, None, 3, 4]
    assert list(checked([], "a timestamp", reject)) == []
    with pytest.raises(LookupError) as caught:
        checked([1, 2, 2**63, "x"], "a timestamp", reject)
    assert caught.value.args[0] == 2


@pytest.mark.parametrize("duration", [2**63, -(2**63), Time.days(10**12), Time.milliseconds(10**30)])
def test_durations_beyond_64_bits_are_refused(duration: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"ttl must be at most 2\*\*63-1 ms"):
        to_ms(duration, "ttl")


def test_a_duration_of_a_fraction_of_a_millisecond_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="must be a timedelta, Time or milliseconds"):
        to_ms(Time.milliseconds(2.5))  # pyright: ignore[reportArgumentType]
