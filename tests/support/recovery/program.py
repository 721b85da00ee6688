"""A program with timers, state, side outputs, windows and two keyed stages; started by the recovery tests as a separate
process: `program.py ENGINE MODE CHECKPOINT_DIR OUT_DIR [--kill-worker-once MARKER]`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from emberflow.streams import (
    BucketAssigner,
    DataGeneratorSource,
    Encoder,
    FileSink,
    KeyedProcessFunction,
    ListStateDescriptor,
    OutputTag,
    RateLimiterStrategy,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)

EVENTS = 900
RATE = 150
KEYS = 7
LARGE = OutputTag("large")


def event(index: int) -> tuple[str, int, int]:
    """(user, amount, event time); out of order by up to 300 ms."""
    return f"user{index % KEYS}", index, index * 40 - (index * 7919) % 300


class Account(KeyedProcessFunction):
    """A running total; a timer at the end of each second reports it; large amounts go to a side output."""

    def __init__(self, kill_marker: str | None) -> None:
        self._kill_marker = kill_marker

    def open(self, runtime_context: Any) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))
        self._recent = runtime_context.get_list_state(ListStateDescriptor("recent"))

    def process_element(self, value: tuple[str, int, int], ctx: Any) -> Iterator[Any]:
        if value[1] == EVENTS // 2:
            self._kill_once()
        self._total.update((self._total.value() or 0) + value[1])
        self._recent.add(value[1])
        ctx.timer_service().register_event_time_timer(value[2] // 1000 * 1000 + 999)
        if value[1] % 50 == 0:
            yield LARGE, ("large", *value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        recent = sorted(self._recent.get())
        self._recent.clear()
        yield ctx.get_current_key(), timestamp, self._total.value(), len(recent)

    def _kill_once(self) -> None:
        """SIGKILL of this process in the middle of a batch, the first time only."""
        if self._kill_marker is None:
            return
        try:
            os.close(os.open(self._kill_marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class Total(KeyedProcessFunction):
    """A second keyed stage whose outcome does not depend on the order between keys of the first."""

    def open(self, runtime_context: Any) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterator[Any]:
        self._total.update((self._total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(EVENTS * 1000)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield "total", ctx.get_current_key(), self._total.value()


def build(env: StreamExecutionEnvironment, out: str, kill_marker: str | None) -> None:
    events = env.from_source(
        DataGeneratorSource(
            event, count=EVENTS, rate_limiter_strategy=RateLimiterStrategy.per_second(RATE), parallelism=1
        ),
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=300)).with_timestamp_assigner(
            lambda value, timestamp: value[2]
        ),
        "events",
    )
    accounts = (
        events.key_by(lambda value: value[0]).process(Account(kill_marker)).name("accounts").uid("accounts")
    )
    windows = (
        events.key_by(lambda value: value[1] % 3)
        .window(TumblingEventTimeWindows.of(timedelta(seconds=2)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])))
        .map(lambda value: ("window", value[1]))
        .key_by(lambda value: value[1] % 2)
        .process(Total())
        .uid("total")
    )
    results = accounts.union(accounts.get_side_output(LARGE), windows)
    results.map(repr).sink_to(
        FileSink.for_row_format(out, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    ).uid("out")


def main(argv: list[str]) -> None:
    engine, mode, checkpoint_dir, out = argv[:4]
    kill_marker = argv[5] if len(argv) > 5 else None
    env = StreamExecutionEnvironment.get_execution_environment(engine=engine, checkpoint_dir=checkpoint_dir)
    env.set_parallelism(2).enable_checkpointing(300)
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    build(env, out, kill_marker)
    Path(out).mkdir(parents=True, exist_ok=True)
    print("started", flush=True)
    env.execute("recovery")
    print("finished", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
