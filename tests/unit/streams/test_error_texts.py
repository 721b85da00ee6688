"""What a user reads when something went wrong around a program: options, execution, state names, tracebacks."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    Configuration,
    InputEvent,
    RunnerContext,
    action,
)
from emberflow.errors import (
    EmberflowError,
    InvalidArgument,
    KeySelectorFailed,
    NotSerializable,
    SinkFailed,
    SourceFailed,
    StepFailed,
)
from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    DataGeneratorSource,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, TestSource, Timed, literal_files, read_committed


class OpensBadly(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise ConnectionError("no route")

    def map(self, value: Any) -> Any:
        return value


class TimerFails(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(7)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        raise ValueError("too late")


class TwoKinds(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._one = runtime_context.get_state(ValueStateDescriptor("seen"))
        self._two = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value


def test_a_failure_in_open() -> None:
    with pytest.raises(StepFailed) as caught:
        LOCAL.run(lambda env: env.from_collection([1]).map(OpensBadly()).name("connect"))
    assert caught.value.message.startswith("step 'connect' (map at test_error_texts.py:")
    assert caught.value.message.endswith(") failed in open()")
    assert caught.value.cause == "ConnectionError: no route"


def test_a_failure_in_a_timer() -> None:
    source = TestSource([Timed("a", 1)])
    with pytest.raises(StepFailed) as caught:
        LOCAL.run(lambda env: env.add_source(source).key_by(str).process(TimerFails()).name("late"))
    assert caught.value.message.startswith("step 'late' (keyed_process at ")
    assert caught.value.message.endswith(") failed in the timer at 7 of key 'a'")


class ClosesBadly(MapFunction):
    def close(self) -> None:
        raise ConnectionError("still in use")

    def map(self, value: Any) -> Any:
        return value


def test_a_failure_in_close() -> None:
    with pytest.raises(StepFailed) as caught:
        LOCAL.run(lambda env: env.from_collection([1]).map(ClosesBadly()).name("connect"))
    assert caught.value.message.endswith(") failed in close()")
    assert caught.value.cause == "ConnectionError: still in use"


def leaves(*_: Any) -> Any:
    raise SystemExit(3)


class Leaving(KeyedProcessFunction):
    def __init__(self, where: str) -> None:
        self._where = where

    def open(self, runtime_context: RuntimeContext) -> None:
        if self._where == "open()":
            leaves()

    def process_element(self, value: Any, ctx: Any) -> None:
        if self._where == "process":
            leaves()
        ctx.timer_service().register_event_time_timer(7)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return leaves()

    def close(self) -> None:
        if self._where == "close()":
            leaves()


class LeavingCall(AsyncFunction):
    async def async_invoke(self, value: Any) -> Any:
        return leaves()


class LeavingSink(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        leaves()


def times(assign: Any) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assign)


def one_key(value: Any) -> int:
    return 1


LEAVING: dict[str, Callable[[Any], Any]] = {
    "map": lambda stream: stream.map(leaves),
    "filter": lambda stream: stream.filter(leaves),
    "flat_map": lambda stream: stream.flat_map(leaves),
    "key_by": lambda stream: stream.key_by(leaves).map(str),
    "reduce": lambda stream: stream.key_by(one_key).reduce(leaves),
    "process": lambda stream: stream.key_by(str).process(Leaving("process")),
    "open()": lambda stream: stream.key_by(str).process(Leaving("open()")),
    "close()": lambda stream: stream.key_by(str).process(Leaving("close()")),
    "the timer at 7": lambda stream: stream.key_by(str).process(Leaving("timer")),
    "timestamps": lambda stream: stream.assign_timestamps_and_watermarks(times(leaves)),
    "window": lambda stream: stream.key_by(one_key).window(TumblingEventTimeWindows.of(Time.days(1))).reduce(leaves),
    "async": lambda stream: AsyncDataStream.unordered_wait(stream, LeavingCall(), Time.minutes(10), 2),
}  # fmt: skip


@pytest.mark.parametrize("where", LEAVING)
def test_any_exception_of_user_code_names_the_step(where: str) -> None:
    """SystemExit, or the panic of an extension in Rust, is no Exception."""
    source = TestSource([Timed("a", 1), Timed("b", 2)])
    if where == "close()":
        source = TestSource([])
    with pytest.raises((StepFailed, KeySelectorFailed)) as caught:
        LOCAL.run(lambda env: LEAVING[where](env.add_source(source)))
    assert "step '" in caught.value.message
    assert caught.value.cause == "SystemExit: 3"
    if where.endswith(")") or where.startswith("the timer"):
        assert where in caught.value.message


def test_a_sink_and_a_source_that_exit_are_named() -> None:
    env = LOCAL.environment()
    env.from_collection([1]).add_sink(LeavingSink()).name("out")
    with pytest.raises(SinkFailed, match="sink 'out' could not write"):
        env.execute()
    env = LOCAL.environment()
    env.from_source(DataGeneratorSource(leaves, 3), WatermarkStrategy.no_watermarks(), "numbers").print()
    with pytest.raises(SourceFailed, match="the source Data generator"):
        env.execute()


class Locked:
    def __init__(self, value: Any) -> None:
        self.lock = threading.Lock()


def test_a_key_that_cannot_be_stored_is_named_with_its_step(tmp_path: Path) -> None:
    """One task alone needs no group for it: the checkpoint finds out."""
    env = LOCAL.environment(checkpoint_dir=tmp_path).set_parallelism(1)
    env.from_collection([1]).key_by(Locked).sum().uid("locked").print()
    with pytest.raises(
        NotSerializable, match=r"step 'locked': the key <.*Locked object .* cannot be stored"
    ) as caught:
        env.execute()
    assert "key_by()" in caught.value.way_out


def test_two_states_of_different_kinds_under_one_name() -> None:
    with pytest.raises(InvalidArgument) as caught:
        LOCAL.run(lambda env: env.from_collection(["a"]).key_by(str).process(TwoKinds()).name("both"))
    assert caught.value.message == "step 'both' has two states named 'seen', of the kinds value and list"


@pytest.mark.parametrize(
    ("name", "near"), [("state_backned", "state_backend"), ("max_record_per_batch", "max_records_per_batch")]
)
def test_an_unknown_option_is_rejected_with_the_closest_name(name: str, near: str) -> None:
    with pytest.raises(InvalidArgument, match=f"there is no option '{name}'; did you mean '{near}'?"):
        StreamExecutionEnvironment.get_execution_environment({name: "x"}, engine="local")
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(InvalidArgument, match=f"did you mean '{near}'?"):
        env.set_option(name, "x")
    with pytest.raises(InvalidArgument) as caught:
        env.set_option("colour", "x")
    assert caught.value.message == "there is no option 'colour'"
    assert "state_backend" in caught.value.way_out


def test_a_misspelt_option_of_an_agent_is_rejected(tmp_path: Path) -> None:
    config = Configuration()
    for setter in (config.set_int, config.set_float, config.set_str, config.set_bool):
        with pytest.raises(
            InvalidArgument, match="there is no option 'max-stepss'; did you mean 'max-steps'"
        ):
            setter("max-stepss", 5)  # pyright: ignore[reportArgumentType]
    path = tmp_path / "agent.json"
    path.write_text('{"on-eror": "skip"}')
    with pytest.raises(InvalidArgument, match="there is no option 'on-eror'; did you mean 'on-error'"):
        config.load(path)
    config.set_str("my-own-key", "x")
    config.set_int("max-steps", 5)


def test_a_program_that_failed_can_be_executed_again(tmp_path: Path) -> None:
    there = tmp_path / "there"
    env = LOCAL.environment()
    env.from_collection(["a", "b"]).map(lambda value: there.read_text() + value).sink_to(
        literal_files(tmp_path / "out")
    )
    with pytest.raises(StepFailed):
        env.execute()
    there.write_text("x")
    env.execute()
    assert read_committed(tmp_path / "out") == ["xa", "xb"]


def test_what_failed_is_not_executed_together_with_what_is_added_afterwards() -> None:
    """As in Flink, where an execution takes its steps with it, whether it succeeds or not."""
    env = LOCAL.environment()
    env.from_collection([0]).map(lambda value: 1 // value).print()
    with pytest.raises(StepFailed):
        env.execute()
    assert env.from_collection([2]).execute_and_collect(limit=1) == [2]
    later: list[int] = []
    env.from_collection([3]).add_sink(later.append)
    env.execute()
    assert later == [3]
    with pytest.raises(StepFailed):
        env.execute()


def test_executing_an_executed_program_is_an_error() -> None:
    env = LOCAL.environment()
    env.from_collection([1]).print()
    env.execute()
    with pytest.raises(InvalidArgument) as caught:
        env.execute()
    assert caught.value.message.startswith("every sink of the program was executed already")


PROGRAM = """\
from emberflow.streams import StreamExecutionEnvironment

def divide(value):
    return 1 // value

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
env.from_collection([1, 0]).map(divide).print()
env.execute()
"""


AGENT_PROGRAM = """\
from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, action
from emberflow.streams import StreamExecutionEnvironment

class Divider(Agent):
    @action(InputEvent)
    @staticmethod
    def divide(event, ctx):
        1 // event.input

local = StreamExecutionEnvironment.get_execution_environment(engine="local")
env = AgentsExecutionEnvironment.get_execution_environment(local)
env.from_list([{"key": "a", "value": 0}]).apply(Divider()).to_list()
env.execute()
"""


def test_a_script_with_an_agent_shows_its_own_lines(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(AGENT_PROGRAM)
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    frames = [line for line in ended.stderr.splitlines() if line.startswith("  File ")]
    assert 'program.py", line 8, in divide' in ended.stderr
    assert len([line for line in frames if str(program) not in line]) == 1, ended.stderr


class Idle(Agent):
    @action(InputEvent)
    @staticmethod
    def nothing(event: InputEvent, ctx: RunnerContext) -> None: ...


def test_the_line_that_adds_a_step_is_the_users() -> None:
    agents = AgentsExecutionEnvironment.get_execution_environment(LOCAL.environment())
    agents.from_list([{"key": "a", "value": 0}]).apply(Idle()).to_list()
    locations = re.findall(r"  at (\S+)", agents.env.explain())
    assert len(locations) == 4
    assert {location.split(":")[0] for location in locations} == {Path(__file__).name}


@pytest.mark.parametrize("full", ["", "1"])
def test_a_script_shows_its_own_lines(tmp_path: Path, full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBERFLOW_TRACEBACK", raising=False)
    monkeypatch.setenv("EMBERFLOW_FULL_TRACE", full)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    frames = [line for line in ended.stderr.splitlines() if line.startswith("  File ")]
    library = [line for line in frames if str(program) not in line]
    assert 'program.py", line 4, in divide' in ended.stderr
    assert 'program.py", line 8, in <module>' in ended.stderr
    assert (
        "StepFailed [EF2101]: step 'map' (map at program.py:7) could not process the value 0" in ended.stderr
    )
    if full:
        assert len(library) > 3
    else:
        assert len(library) == 1, ended.stderr


def test_shortened_errors_keep_their_cause() -> None:
    env = LOCAL.environment()
    env.from_collection([0]).map(lambda value: 1 // value).print()
    with pytest.raises(EmberflowError) as caught:
        env.execute()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    trace = caught.value.__cause__.__traceback__
    assert trace is not None
    assert trace.tb_frame.f_code.co_filename == __file__
