"""B13: where event time comes from and how it advances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    KeyedProcessFunction,
    NumberSequenceSource,
    ProcessFunction,
    RuntimeContext,
    TimestampAssigner,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import (
    SPARK,
    STREAMING_HOSTS,
    Cut,
    Host,
    Latch,
    Pause,
    TestSource,
    Timed,
    literal_files,
    on_every_host,
    per_key,
    read_committed,
)

START, END = -(2**63), 2**63 - 1


def first(value: Any) -> Any:
    return value[0]


def second(value: Any, _: int) -> int:
    return value[1]


class ShowWatermark(KeyedProcessFunction):
    """Each record with the watermark in force before it; and again at the very end."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(END)
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), "end", ctx.timer_service().current_watermark()


class Forward(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value


class Answer(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]


class Chained(ProcessFunction):
    """Without keys: each record with the watermark that the function sees, and the one it saw before."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before = START

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        watermark, before = ctx.timer_service().current_watermark(), self._before
        self._before = watermark
        yield self._name, ctx.timestamp(), before, watermark


class Punctuated(WatermarkGenerator):
    """A record marked "!" determines the watermark."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        if value[2:] == ("!",):
            output.emit_watermark(Watermark(timestamp))


class Periodic(WatermarkGenerator):
    """The highest timestamp so far, minus 5; it has state, which must survive from batch to batch."""

    def __init__(self) -> None:
        self._highest = -100

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self._highest = max(self._highest, timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(self._highest - 5)


class Assigner(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1] * 10


class Gate(KeyedProcessFunction):
    """Key "a" reports whether its timer at 10 has fired when its next record comes. A record that `seen` describes opens the
    latch."""

    def __init__(self, latch: Latch, seen: Callable[[int, bool], bool]) -> None:
        self._latch = latch
        self._seen = seen

    def open(self, runtime_context: RuntimeContext) -> None:
        self._fired = runtime_context.get_state(ValueStateDescriptor("fired"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        if value[0] == "a":
            ctx.timer_service().register_event_time_timer(10)
            fired = bool(self._fired.value())
            if self._seen(value[1], fired):
                self._latch.open()
            yield value[0], value[1], fired

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self._fired.update(True)


class PauseUnless(Pause):
    """A pause that is skipped when the latch is open."""

    def __init__(self, ms: int, latch: Latch) -> None:
        super().__init__(ms)
        self._latch = latch

    def __getattribute__(self, name: str) -> Any:
        if name == "ms" and self._latch.is_open:
            return 0
        return super().__getattribute__(name)


def shown(host: Host, strategy: WatermarkStrategy, records: list[Any], batch: int | None = None) -> list[Any]:
    source = TestSource(records, batch)
    return host.run(
        lambda env: (
            env.add_source(source)
            .assign_timestamps_and_watermarks(strategy)
            .key_by(first)
            .process(ShowWatermark())
        )
    )


@on_every_host
def test_monotonous_timestamps(host: Host) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)
    out = shown(host, strategy, [("a", 10), ("a", 20), ("a", 20), ("a", 30)])
    marks = [START, 9, 19, 19] if host.streaming else [START] * 4
    assert out == [
        *[("a", stamp, mark) for stamp, mark in zip([10, 20, 20, 30], marks, strict=True)],
        ("a", "end", END),
    ]


@on_every_host(nightly=[SPARK])
def test_bounded_out_of_orderness_is_max_less_delay_less_one(host: Host) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        timedelta(milliseconds=5)
    ).with_timestamp_assigner(second)
    out = shown(host, strategy, [("a", 10), ("a", 7), ("a", 20), ("a", 16)], batch=2)
    marks = [START, 4, 4, 14] if host.streaming else [START] * 4
    assert [mark for _, _, mark in out] == [*marks, END]


@on_every_host
def test_a_punctuated_generator(host: Host) -> None:
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(second)
    out = shown(host, strategy, [("a", 10), ("a", 20, "!"), ("a", 15), ("a", 40, "!"), ("a", 41)], batch=2)
    marks = [START, START, 20, 20, 40] if host.streaming else [START] * 5
    assert [mark for _, _, mark in out] == [*marks, END]


@on_every_host(nightly=[SPARK])
def test_a_periodic_generator_keeps_its_state(host: Host) -> None:
    strategy = WatermarkStrategy.for_generator(Periodic).with_timestamp_assigner(second)
    out = shown(host, strategy, [("a", 10), ("a", 8), ("a", 20), ("a", 19)], batch=1)
    marks = [START, 5, 5, 15] if host.streaming else [START] * 4
    assert [mark for _, _, mark in out] == [*marks, END]


@on_every_host(nightly=[SPARK])
def test_timestamps_from_an_assigner_object_and_from_the_source(host: Host) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Assigner())
    out = shown(host, strategy, [("a", 1), ("a", 2)])
    assert [stamp for _, stamp, _ in out] == [10, 20, "end"]
    out = shown(
        host, WatermarkStrategy.for_monotonous_timestamps(), [Timed(("a", 0), 33), Timed(("a", 0), 44)]
    )
    assert [stamp for _, stamp, _ in out] == [33, 44, "end"]


@on_every_host(nightly=[SPARK])
def test_no_watermarks_means_only_the_end(host: Host) -> None:
    out = shown(host, WatermarkStrategy.no_watermarks().with_timestamp_assigner(second), [("a", 1), ("a", 2)])
    assert out == [("a", 1, START), ("a", 2, START), ("a", "end", END)]


@on_every_host
def test_steps_chained_behind_a_keyed_step_see_event_time_of_all_its_keys(host: Host) -> None:
    """On Spark a worker serves one key group after another: what one has reached must not show with the next."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)
    records = [(f"k{number % 40}", number * 10) for number in range(160)]
    source = TestSource([item for i in range(0, 160, 40) for item in (*records[i : i + 40], Cut())])

    def build(env: Any) -> Any:
        keyed = env.from_source(source, strategy, "records").key_by(first).process(Forward())
        second_strategy = keyed.assign_timestamps_and_watermarks(strategy)
        wait = timedelta(seconds=60)
        return keyed.process(Chained("chained")).union(
            AsyncDataStream.unordered_wait(keyed, Answer(), wait, 100).process(Chained("async")),
            second_strategy.process(Chained("strategy")),
            AsyncDataStream.ordered_wait(second_strategy, Answer(), wait, 100).process(Chained("both")),
            keyed.rebalance().process(Chained("own tasks")),
        )

    out = host.run(build)
    for name in ("chained", "async", "strategy", "both", "own tasks"):
        seen = [found[1:] for found in out if found[0] == name]
        assert sorted(stamp for stamp, _, _ in seen) == [stamp for _, stamp in records], name
        assert all(watermark < stamp for stamp, _, watermark in seen), f"{name}: ahead of a record"
        assert all(before <= watermark for _, before, watermark in seen), f"{name}: goes back"
        moves = len({watermark for _, _, watermark in seen}) > 1
        assert moves == host.streaming or name in ("strategy", "both"), name


@on_every_host(hosts=STREAMING_HOSTS)
def test_two_sources_merge_to_the_smaller_watermark(host: Host) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)
    last = Latch()
    ahead = TestSource([("a", 0), ("a", 100), Pause(150), ("a", 200)])
    behind = TestSource([("b", 5), last, ("b", 6)])

    def build(env: Any) -> Any:
        both = env.from_source(ahead, strategy, "ahead").union(env.from_source(behind, strategy, "behind"))
        return both.key_by(first).process(Gate(last, lambda number, fired: number == 200))

    # The timer of "a" at 10 waits for the slow source, which is at 4.
    assert host.run(build) == [("a", 0, False), ("a", 100, False), ("a", 200, False)]


@on_every_host(hosts=STREAMING_HOSTS)
def test_an_idle_source_holds_nothing_back(host: Host) -> None:
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(second)
        .with_idleness(timedelta(milliseconds=100))
    )
    fired = Latch()
    later = [item for number in range(200, 500) for item in (PauseUnless(200, fired), ("a", number))]
    ahead = TestSource([("a", 0), ("a", 100), *later])
    idle = TestSource([("b", 5), fired, ("b", 6)])

    def build(env: Any) -> Any:
        both = env.from_source(ahead, strategy, "ahead").union(env.from_source(idle, strategy, "idle"))
        return both.key_by(first).process(Gate(fired, lambda number, fired: fired))

    out = host.run(build)
    assert out[:2] == [("a", 0, False), ("a", 100, False)]
    assert out[-1] == ("a", 499, True)
    assert fired.is_open, "while the other source was silent, not when it had ended"


@on_every_host(nightly=[SPARK])
def test_every_key_reaches_the_end_of_time(host: Host) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)
    out = per_key(shown(host, strategy, [(f"k{i}", i) for i in range(40)]))
    assert all(found[-1] == (key, "end", END) for key, found in out.items())
    assert len(out) == 40


@on_every_host(nightly=[SPARK])
def test_a_later_strategy_replaces_an_earlier_one(host: Host) -> None:
    early = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1] * 1000
    )
    late = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, before: before // 1000
    )
    source = TestSource([("a", 1), ("a", 2)])
    out = host.run(
        lambda env: (
            env.from_source(source, early, "early")
            .map(lambda value: value)
            .assign_timestamps_and_watermarks(late)
            .key_by(first)
            .process(ShowWatermark())
        )
    )
    marks = [START, 0] if host.streaming else [START, START]
    assert out == [("a", 1, marks[0]), ("a", 2, marks[1]), ("a", "end", END)]


@on_every_host(hosts=STREAMING_HOSTS, nightly=[SPARK])
def test_a_generator_after_several_channels_reaches_the_end_of_time_and_stays_there(
    host: Host, tmp_path: Path
) -> None:
    """Channels end one after another; when restarted, the program has nothing left to do."""
    out = tmp_path / "out"
    for _ in range(2):
        env = host.environment(checkpoint_dir=tmp_path / "checkpoints")
        strategy = WatermarkStrategy.for_generator(Periodic).with_timestamp_assigner(lambda value, _: value)
        (
            env.from_source(NumberSequenceSource(1, 400))
            .union(env.from_collection([401, 402]))
            .assign_timestamps_and_watermarks(strategy)
            .map(lambda value: (value % 3, 1))
            .key_by(first)
            .window(TumblingEventTimeWindows.of(timedelta(seconds=10)))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
            .sink_to(literal_files(out))
            .uid("out")
        )
        env.execute("channels")
        assert sorted(read_committed(out)) == [(0, 134), (1, 134), (2, 134)]
