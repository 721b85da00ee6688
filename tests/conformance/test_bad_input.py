"""Wrong programs and bad data: the same class of error on every host, naming the step, the value and the way out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files.file_source import FileSource
from emberflow.connectors.files.stream_formats import StreamFormat
from emberflow.errors import (
    CheckpointUnusable,
    DuplicateUid,
    InvalidArgument,
    KeySelectorFailed,
    NotKeyed,
    NotSerializable,
    ProgramChanged,
    SourceFailed,
    StepFailed,
    UnknownState,
)
from emberflow.streams import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import SPARK, SPARK_BATCH, Host, on_every_host, unordered


def first(value: Any) -> Any:
    return value[0]


def parse(value: str) -> int:
    return int(value)


class AsksForAnUnknownState(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield self._context.get_state("cuont").value()


class AsksForStateWithoutKeys(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def map(self, value: Any) -> Any:
        return value


class SetsATimerWithoutKeys(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(5)
        yield value


class FailsInOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError("nobody there")

    def map(self, value: Any) -> Any:
        return value


class FailsInTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(77)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        raise ZeroDivisionError("in a timer")


class HoldsALock(MapFunction):
    def __init__(self) -> None:
        self._lock = threading.Lock()

    def map(self, value: Any) -> Any:
        return value


def parts_of(error: pytest.ExceptionInfo[Any], *parts: str) -> None:
    text = str(error.value)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in:\n{text}"


@on_every_host(nightly=[SPARK_BATCH])
def test_a_map_that_raises(host: Host) -> None:
    with pytest.raises(StepFailed) as error:
        host.run(lambda env: env.from_collection(["1", "two", "3"]).map(parse).name("parse numbers"))
    parts_of(
        error,
        "EF2101",
        "step 'parse numbers'",
        "test_bad_input.py:",
        "'two'",
        "cause: ValueError: invalid literal",
        "what to do: fix the function",
        "not committed",
    )


@on_every_host(nightly=[SPARK_BATCH])
def test_a_keyed_function_that_raises(host: Host) -> None:
    with pytest.raises(StepFailed) as error:
        host.run(
            lambda env: (
                env.from_collection([("a", 1), ("a", None)])
                .key_by(first)
                .reduce(lambda a, b: (a[0], a[1] + b[1]))  # pyright: ignore[reportOperatorIssue]
                .name("add up")
            )
        )
    parts_of(error, "step 'add up'", "('a', None)", "cause: TypeError", "what to do")


@on_every_host(nightly=[SPARK_BATCH])
def test_a_timer_that_raises(host: Host) -> None:
    with pytest.raises(StepFailed) as error:
        host.run(
            lambda env: env.from_collection([("k", 1)]).key_by(first).process(FailsInTimer()).name("alarm")
        )
    parts_of(error, "step 'alarm'", "timer at 77 of key 'k'", "ZeroDivisionError: in a timer")


@on_every_host(nightly=[SPARK])
def test_a_function_that_cannot_be_opened(host: Host) -> None:
    with pytest.raises(StepFailed) as error:
        host.run(lambda env: env.from_collection([1]).map(FailsInOpen()).name("look up"))
    parts_of(error, "step 'look up'", "open()", "ConnectionError: nobody there")


@on_every_host(nightly=[SPARK])
def test_a_key_selector_that_raises(host: Host) -> None:
    with pytest.raises(KeySelectorFailed) as error:
        host.run(
            lambda env: (
                env.from_collection([{"user": "ann"}, {"name": "bob"}])
                .key_by(lambda value: value["user"])
                .map(lambda value: value)
                .name("profile")
            )
        )
    parts_of(
        error,
        "EF2102",
        "step 'profile'",
        "{'name': 'bob'}",
        "cause: KeyError: 'user'",
        "what to do",
        "key_by()",
    )


@on_every_host(nightly=[SPARK])
def test_a_key_that_cannot_be_hashed(host: Host) -> None:
    with pytest.raises(KeySelectorFailed) as error:
        host.run(lambda env: env.from_collection([{"a": 1}]).key_by(lambda v: v).map(len).name("maps"))
    parts_of(error, "step 'maps'", "{'a': 1}", "unhashable", "what to do")


class Locked:
    """A key that is equal to others of its kind, but not to be stored."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Locked) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Locked({self.value})"


@on_every_host(nightly=[SPARK])
def test_a_key_that_cannot_be_assigned_to_a_task(host: Host) -> None:
    with pytest.raises(KeySelectorFailed) as error:
        host.run(lambda env: env.set_parallelism(2).from_collection([1]).key_by(Locked).sum().name("locked"))
    parts_of(error, "the key Locked(1)", "step 'locked'", "cannot pickle", "what to do", "key_by()")


@on_every_host(nightly=[SPARK])
def test_a_function_that_exits(host: Host) -> None:
    with pytest.raises(StepFailed) as error:
        host.run(lambda env: env.from_collection([7]).map(sys.exit).name("leaves"))
    parts_of(error, "step 'leaves'", "the value 7", "cause: SystemExit: 7")


@on_every_host(nightly=[SPARK])
def test_a_timestamp_assigner_that_raises(host: Host) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value["at"]
    )
    with pytest.raises(StepFailed) as error:
        host.run(
            lambda env: (
                env.from_collection([{"at": 1}, {}]).assign_timestamps_and_watermarks(strategy).name("times")
            )
        )
    parts_of(error, "step 'times'", "the value {}", "KeyError: 'at'")


@on_every_host(nightly=[SPARK])
def test_records_without_event_time(host: Host) -> None:
    """They pass a strategy without an assigner, as in Flink; a step that needs their event time says what is missing."""

    def without_assigner(env: StreamExecutionEnvironment) -> DataStream[tuple[str, int]]:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        return env.from_collection([("a", 1), ("b", 2)]).assign_timestamps_and_watermarks(strategy)

    class Stamped(ProcessFunction[tuple[str, int], object]):
        def process_element(
            self, value: tuple[str, int], ctx: ProcessFunction.Context
        ) -> Iterator[tuple[str, int | None]]:
            yield value[0], ctx.timestamp()

    assert unordered(host.run(lambda env: without_assigner(env).process(Stamped()))) == [
        ("a", None),
        ("b", None),
    ]
    with pytest.raises(StepFailed) as error:
        host.run(
            lambda env: (
                without_assigner(env)
                .key_by(first)
                .window(TumblingEventTimeWindows.of(5))
                .reduce(lambda a, _: a)
                .name("windows")
            )
        )
    parts_of(error, "step 'windows'", "no event time", "timestamp assigner")


@on_every_host
def test_a_value_that_cannot_be_serialised(host: Host) -> None:
    with pytest.raises(NotSerializable) as error:
        host.run(
            lambda env: (
                env.from_collection([1, 2])
                .map(lambda n: (n, threading.Lock()))
                .key_by(first)
                .map(lambda v: v[0])
            )
        )
    parts_of(error, "EF2103", "lock", "what to do")


@on_every_host(nightly=[SPARK])
def test_state_that_cannot_be_serialised(host: Host, tmp_path: Path) -> None:
    class KeepsALock(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._lock = runtime_context.get_state(ValueStateDescriptor("lock"))

        def process_element(self, value: Any, ctx: Any) -> None:
            self._lock.update(threading.Lock())

    with pytest.raises(NotSerializable) as error:
        host.run(
            lambda env: env.from_collection([1]).key_by(lambda n: n).process(KeepsALock()).name("locks"),
            checkpoint_dir=tmp_path / "checkpoints",
        )
    parts_of(error, "lock", "what to do", "open()")


@on_every_host
def test_a_function_object_that_cannot_be_shipped(host: Host) -> None:
    with pytest.raises(NotSerializable) as error:
        host.run(lambda env: env.from_collection([1]).map(HoldsALock()).name("locked"))
    parts_of(error, "'locked'", "lock", "open()")


@on_every_host(nightly=[SPARK])
def test_an_unknown_state_name(host: Host) -> None:
    with pytest.raises(UnknownState) as error:
        host.run(
            lambda env: (
                env.from_collection(["a"]).key_by(first).process(AsksForAnUnknownState()).name("count")
            )
        )
    parts_of(error, "EF2104", "step 'count'", "'cuont'", "did you mean 'count'?", "what to do")


@on_every_host(nightly=[SPARK])
def test_state_and_timers_need_keys(host: Host) -> None:
    with pytest.raises(NotKeyed) as error:
        host.run(lambda env: env.from_collection([1]).map(AsksForStateWithoutKeys()).name("count"))
    parts_of(error, "step 'count'", "state 'count'", "key_by()")
    with pytest.raises(NotKeyed) as error:
        host.run(lambda env: env.from_collection([1]).process(SetsATimerWithoutKeys()).name("alarm"))
    parts_of(error, "step 'alarm'", "timer", "key_by()")


@on_every_host
def test_a_checkpoint_directory_below_a_file(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointUnusable) as error:
        host.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path / "file" / "checkpoints")
    parts_of(error, "EF3001", str(tmp_path / "file"), "what to do", "checkpoint_dir")


@on_every_host(nightly=[SPARK_BATCH])
def test_a_changed_program_on_an_old_checkpoint(host: Host, tmp_path: Path) -> None:
    host.run(
        lambda env: env.from_collection([("a", 1)]).key_by(first).sum(1).uid("totals"),
        checkpoint_dir=tmp_path,
    )
    with pytest.raises(ProgramChanged) as error:
        host.run(
            lambda env: env.from_collection([("a", 1)]).key_by(first).max(1).uid("highest"),
            checkpoint_dir=tmp_path,
        )
    parts_of(
        error, "EF3002", "gone: sum 'totals'", "new: max 'highest'", "what to do", "uid()", "not changed"
    )


@on_every_host(nightly=[SPARK])
def test_another_maximum_parallelism_on_an_old_checkpoint(host: Host, tmp_path: Path) -> None:
    host.run(lambda env: env.from_collection([1]).key_by(lambda n: n).sum(), checkpoint_dir=tmp_path)
    with pytest.raises(ProgramChanged) as error:
        host.run(
            lambda env: env.set_max_parallelism(16).from_collection([1]).key_by(lambda n: n).sum(),
            checkpoint_dir=tmp_path,
        )
    parts_of(error, "64", "16", "set_max_parallelism(64)")


@on_every_host(nightly=[SPARK])
def test_a_file_that_ends_in_the_middle_of_a_record(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n{"n": ')
    source = FileSource.for_record_stream_format(StreamFormat.json_lines(), str(path)).build()
    with pytest.raises(SourceFailed) as error:
        host.run(lambda env: env.add_source(source))
    parts_of(error, "EF2105", "broken.jsonl", "what to do")


@on_every_host
def test_two_steps_with_one_uid(host: Host) -> None:
    with pytest.raises(DuplicateUid) as error:
        host.run(lambda env: env.from_collection([1]).uid("x").map(lambda n: n).name("second").uid("x"))
    parts_of(error, "EF1003", "'second'", "'x'", "its own uid")


@on_every_host
def test_an_object_that_is_not_a_function(host: Host) -> None:
    env = host.environment()
    stream = env.from_collection([1])
    for wrong in (
        lambda: stream.map(5),  # pyright: ignore[reportArgumentType]
        lambda: stream.key_by(5.0),  # pyright: ignore[reportCallIssue, reportArgumentType]
        lambda: stream.sink_to("file"),  # pyright: ignore[reportArgumentType]
        lambda: stream.process(AsksForAnUnknownState()),  # pyright: ignore[reportArgumentType]
        lambda: env.set_parallelism(0),
        lambda: env.enable_checkpointing(0),
        lambda: env.add_source([1]),  # pyright: ignore[reportArgumentType]
        lambda: env.from_collection("text"),
        lambda: stream.union(host.environment().from_collection([1])),
    ):
        with pytest.raises(InvalidArgument):
            wrong()


@on_every_host
def test_a_failed_program_continues_after_it_was_fixed(host: Host, tmp_path: Path) -> None:
    folder, calls = tmp_path / "checkpoints", tmp_path / "repaired"

    def fragile(value: int) -> int:
        if value == 3 and not calls.exists():
            raise RuntimeError("not repaired yet")
        return value * 10

    def build(env: Any) -> Any:
        return env.from_collection([1, 2, 3]).map(fragile)

    with pytest.raises(StepFailed, match="not repaired yet"):
        host.run(build, checkpoint_dir=folder)
    calls.touch()
    assert host.run(build, checkpoint_dir=folder) == [10, 20, 30]
