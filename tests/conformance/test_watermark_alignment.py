"""B13: sources of one watermark group stay together in event time, and results do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument
from emberflow.streams import (
    CollectSink,
    NumberSequenceSource,
    ProcessFunction,
    TumblingEventTimeWindows,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import (
    HOSTS,
    LOCAL,
    SPARK,
    Host,
    Latch,
    Pause,
    TestSource,
    on_every_host,
    unordered,
)

DRIFT_MS, WINDOW_MS = 200, 100
FAST, SLOW = 1_000, 5_000
STEPS = {"fast": 10, "slow": 1}
"""Milliseconds of event time between two records."""
LOCAL_STREAMS = tuple(host for host in HOSTS if host.engine == "local" and host.streaming)


class Counted(Source[tuple[str, int]]):
    """Records with their times. In the process of the test, `spread` is how far "fast" was read beyond "slow"."""

    read_to: dict[str, int]
    spread: int

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count

    @classmethod
    def begin(cls) -> None:
        cls.read_to, cls.spread = dict.fromkeys(STEPS, 0), 0

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[tuple[str, int]]]:
        step, name = STEPS[self._name], self._name
        while position < self._count:
            behind = min(position + limit, self._count)
            self.read_to[name] = (behind - 1) * step
            if name == "fast" and self.read_to["slow"] < (SLOW - 1) * STEPS["slow"]:
                Counted.spread = max(Counted.spread, self.read_to["fast"] - self.read_to["slow"])
            values = [(name, number * step) for number in range(position, behind)]
            yield Chunk(values, behind, end=behind == self._count)
            position = behind


Counted.begin()


class Highest(WatermarkGenerator):
    def __init__(self) -> None:
        self._highest = -1

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self._highest = max(self._highest, timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(Watermark(self._highest - 1))


class Opens(ProcessFunction):
    """Opens the latch when it sees the record."""

    def __init__(self, latch: Latch, record: Any) -> None:
        self._latch = latch
        self._record = record

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        if value == self._record:
            self._latch.open()
        yield value


def first(value: Any) -> Any:
    return value[0]


def second(value: Any, _: int) -> int:
    return value[1]


def monotonous() -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)


def aligned(strategy: WatermarkStrategy | None = None, drift_ms: int = DRIFT_MS) -> WatermarkStrategy:
    drift = timedelta(milliseconds=drift_ms)
    return (strategy or monotonous()).with_watermark_alignment("together", drift, timedelta(seconds=1))


def windows(strategy: WatermarkStrategy) -> Callable[[Any], Any]:
    """How many records each source has in each window."""

    def build(env: Any) -> Any:
        fast = env.from_source(Counted("fast", FAST), strategy, "fast")
        slow = env.from_source(Counted("slow", SLOW), strategy, "slow")
        return (
            fast.union(slow)
            .map(lambda value: (value[0], value[1] // WINDOW_MS, 1))
            .key_by(first)
            .window(TumblingEventTimeWindows.of(timedelta(milliseconds=WINDOW_MS)))
            .reduce(lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]))
        )

    return build


def counts() -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for name, records in (("fast", FAST), ("slow", SLOW)):
        each = WINDOW_MS // STEPS[name]
        found.extend((name, number, each) for number in range(records // each))
    return unordered(found)


@on_every_host(nightly=[SPARK])
def test_results_are_the_same_as_without_alignment(host: Host) -> None:
    assert unordered(host.run(windows(aligned()))) == counts()


@on_every_host(hosts=LOCAL_STREAMS)
def test_a_source_that_is_ahead_waits_for_the_slowest_of_its_group(host: Host) -> None:
    for strategy in (monotonous(), WatermarkStrategy.for_generator(Highest).with_timestamp_assigner(second)):
        Counted.begin()
        assert unordered(host.run(windows(strategy))) == counts()
        assert Counted.spread > 10 * DRIFT_MS, "so far ahead without alignment"
        Counted.begin()
        assert unordered(host.run(windows(aligned(strategy)))) == counts()
        # The records of a first read have unknown times; the bound holds when they are within the drift, as here.
        assert 0 < Counted.spread <= DRIFT_MS + STEPS["fast"]


@on_every_host(hosts=LOCAL_STREAMS)
def test_a_strategy_behind_other_steps_of_a_source_is_aligned_too(host: Host) -> None:
    def build(env: Any) -> Any:
        streams = [env.from_source(Counted(name, count)) for name, count in (("fast", FAST), ("slow", SLOW))]
        kept = streams[0].union(streams[1]).filter(lambda value: value[1] >= 0)
        return kept.assign_timestamps_and_watermarks(aligned()).map(lambda value: value[0])

    Counted.begin()
    assert unordered(host.run(build)) == ["fast"] * FAST + ["slow"] * SLOW
    assert 0 < Counted.spread <= DRIFT_MS + STEPS["fast"]


@on_every_host(hosts=LOCAL_STREAMS)
def test_the_channels_of_a_source_alone_in_its_group_do_not_wait_for_ever(host: Host) -> None:
    strategy = aligned(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 7)
    )
    out = host.run(
        lambda env: env.from_source(NumberSequenceSource(1, 3_000), strategy, "alone").map(
            lambda value: value
        )
    )
    assert sorted(out) == list(range(1, 3_001))


@on_every_host(hosts=LOCAL_STREAMS)
def test_a_finished_source_holds_nobody_back(host: Host) -> None:
    short = TestSource([("short", 0), ("short", 5)])
    long = TestSource([("long", number) for number in range(0, 50_000, 50)], batch=3)

    def build(env: Any) -> Any:
        both = env.from_source(short, aligned(), "short").union(env.from_source(long, aligned(), "long"))
        return both.map(lambda value: value)

    assert len(host.run(build)) == 1_002


@on_every_host(hosts=LOCAL_STREAMS)
def test_an_idle_source_holds_nobody_back(host: Host) -> None:
    strategy = aligned(monotonous().with_idleness(timedelta(milliseconds=30)))
    last = Latch()
    idle = TestSource([("idle", 5), last, ("idle", 50_001)])
    active = TestSource([("active", number) for number in range(0, 50_001, 50)], batch=10)

    def build(env: Any) -> Any:
        both = env.from_source(idle, strategy, "idle").union(env.from_source(active, strategy, "active"))
        return both.process(Opens(last, ("active", 50_000)))

    # The idle source goes on only when the other has been read to its end.
    assert len(host.run(build)) == 1_003


@on_every_host(hosts=(LOCAL,))
def test_a_source_that_waits_is_not_idle_for_the_steps_behind_it(host: Host) -> None:
    """Otherwise event time would go on without it, and its records would be late when it is read again."""
    for strategy in (monotonous(), WatermarkStrategy.for_generator(Highest).with_timestamp_assigner(second)):
        slow = TestSource([("slow", 0), Pause(1_000), ("slow", 10_000)])
        waits = TestSource([("waits", number) for number in range(0, 10_000, 500)], batch=1)
        done = Latch()
        far = TestSource([("far", 0), ("far", 90_000), done, ("far", 90_001)])

        def build(
            env: Any,
            sources: tuple[Source[Any], ...] = (slow, waits, far),
            strategy: WatermarkStrategy = strategy,
            done: Latch = done,
        ) -> Any:
            slow, waits, far = sources
            idles = aligned(strategy.with_idleness(timedelta(milliseconds=600)))
            env.from_source(slow, aligned(strategy), "slow").sink_to(CollectSink(lambda batch: None))
            both = env.from_source(waits, idles, "waits").union(env.from_source(far, strategy, "far"))
            return (
                both.process(Opens(done, ("waits", 9_500)))
                .key_by(first)
                .window(TumblingEventTimeWindows.of(timedelta(milliseconds=500)))
                .reduce(lambda a, b: a)
            )

        assert len([value for value in host.run(build) if value[0] == "waits"]) == 20


@on_every_host(hosts=LOCAL_STREAMS)
def test_two_drifts_for_one_group_are_rejected(host: Host) -> None:
    def build(env: Any) -> Any:
        one = env.from_source(Counted("fast", FAST), aligned(), "one")
        return one.union(env.from_source(Counted("slow", SLOW), aligned(drift_ms=7), "other"))

    with pytest.raises(InvalidArgument, match=r"'together' has two drifts: 200 ms .*, 7 ms"):
        host.run(build)
