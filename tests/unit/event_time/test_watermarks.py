"""Watermark strategies as data."""

from __future__ import annotations

from datetime import timedelta

import pytest

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Duration
from emberflow.event_time.watermarks import (
    TimestampAssigner,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkStrategy,
)


def test_strategies_are_frozen_and_each_step_returns_a_new_one() -> None:
    plain = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=2))
    timed = plain.with_timestamp_assigner(lambda value, timestamp: 1).with_idleness(50)
    assert (plain.delay_ms, plain.assigner, plain.idle_ms) == (2000, None, None)
    assert (timed.delay_ms, timed.idle_ms) == (2000, 50)
    assert timed.assigner is not None


def test_monotonous_is_bounded_by_nothing() -> None:
    assert WatermarkStrategy.for_monotonous_timestamps() == WatermarkStrategy.for_bounded_out_of_orderness(0)
    assert WatermarkStrategy.no_watermarks().delay_ms is None


def test_an_assigner_object_becomes_its_method() -> None:
    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: int, record_timestamp: int) -> int:
            return value + record_timestamp

    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Assigner())
    assert strategy.assigner is not None
    assert strategy.assigner(1, 2) == 3


def test_wrong_strategies() -> None:
    with pytest.raises(InvalidArgument, match="negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(-1)
    with pytest.raises(InvalidArgument, match=r"for_generator\(WatermarkGenerator\)"):
        WatermarkStrategy.for_generator(WatermarkGenerator())  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="positive"):
        WatermarkStrategy.for_monotonous_timestamps().with_idleness(0)


def test_alignment_is_part_of_a_strategy() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    strategy = plain.with_watermark_alignment("group", timedelta(seconds=5), Duration.of_seconds(2))
    assert strategy.with_idleness(50).alignment == WatermarkAlignment(
        group="group", max_drift_ms=5_000, update_interval_ms=2_000
    )
    assert plain.alignment is None
    for default in (
        plain.with_watermark_alignment("group", Duration.of_millis(0)),
        plain.with_watermark_alignment("group", Duration.of_millis(0), None),
    ):
        assert default.alignment is not None
        assert (default.alignment.max_drift_ms, default.alignment.update_interval_ms) == (0, 1_000)


def test_wrong_alignments() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    for group in ("", None, 5):
        with pytest.raises(InvalidArgument, match="watermark_group must be a string that is not empty"):
            plain.with_watermark_alignment(group, 100)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="must not be negative, got -1 ms"):
        plain.with_watermark_alignment("group", -1)
    with pytest.raises(InvalidArgument, match="update_interval must be positive, got 0 ms"):
        plain.with_watermark_alignment("group", 100, 0)
    with pytest.raises(InvalidArgument, match="max_allowed_watermark_drift must be a timedelta"):
        plain.with_watermark_alignment("group", "5 s")  # pyright: ignore[reportArgumentType]
