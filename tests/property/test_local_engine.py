"""The local engine as a whole: random input, random batches, random crashes; committed files equal an undisturbed run."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.streams import TumblingEventTimeWindows, WatermarkStrategy
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, Crash, Host, Pause, TestSource, per_key
from tests.support.count_and_alarm import CountAndAlarm, first

STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(2).with_timestamp_assigner(
    lambda value, _: value[1]
)

records = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)), max_size=15)


def timers(env: Any, source: TestSource) -> Any:
    return env.from_source(source, STRATEGY).key_by(first).process(CountAndAlarm())


def windows(env: Any, source: TestSource) -> Any:
    keyed = env.from_source(source, STRATEGY).key_by(first)
    return keyed.window(TumblingEventTimeWindows.of(5)).reduce(lambda a, b: (a[0], a[1] + b[1]))


def totals_of_totals(env: Any, source: TestSource) -> Any:
    totals = env.add_source(source).key_by(first).sum(1)
    return totals.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] * 31 + b[1]))


@settings(max_examples=15, deadline=None)
@given(
    host=st.sampled_from([LOCAL, LOCAL_2, LOCAL_SQLITE]),
    make=st.sampled_from([timers, windows, totals_of_totals]),
    items=records,
    batch=st.integers(1, 6),
    points=st.sets(st.integers(0, 15), max_size=2),
    pause=st.integers(0, 15),
)
def test_crashes_and_batches_change_nothing(
    host: Host, make: Any, items: list[Any], batch: int, points: set[int], pause: int
) -> None:
    whole = LOCAL.run(lambda env: make(env, TestSource(items)))
    disturbed: list[Any] = []
    for index, item in enumerate(items):
        disturbed += [Crash()] if index in points else []
        disturbed += [Pause(25)] if index == pause else []
        disturbed.append(item)
    source = TestSource(disturbed, batch)
    with tempfile.TemporaryDirectory() as folder:
        run = host.run_to_files(lambda env: make(env, source), folder, checkpoint_interval_ms=10)
    assert per_key(run.values) == per_key(whole)
