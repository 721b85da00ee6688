"""What a user reads when something went wrong around a program: options, execution, state names, tracebacks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Configuration
from emberflow.errors import EmberflowError, InvalidArgument, StepFailed
from emberflow.streams import (
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
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


def test_two_states_of_different_kinds_under_one_name() -> None:
    with pytest.raises(InvalidArgument) as caught:
        LOCAL.run(lambda env: env.from_collection(["a"]).key_by(str).process(TwoKinds()).name("both"))
    assert caught.value.message == "step 'both' has two states named 'seen', of the kinds value and list"


@pytest.mark.parametrize(
    ("name", "near"), [("state_backned", "state_backend"), ("max_record_per_batch", "max_records_per_batch")]
)
def test_an_unknown_option_is_refused_with_the_closest_name(name: str, near: str) -> None:
    with pytest.raises(InvalidArgument, match=f"there is no option '{name}'; did you mean '{near}'?"):
        StreamExecutionEnvironment.get_execution_environment({name: "x"}, engine="local")
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    with pytest.raises(InvalidArgument, match=f"did you mean '{near}'?"):
        env.set_option(name, "x")
    with pytest.raises(InvalidArgument) as caught:
        env.set_option("colour", "x")
    assert caught.value.message == "there is no option 'colour'"
    assert "state_backend" in caught.value.way_out


def test_an_agents_option_that_is_nearly_one_is_refused(tmp_path: Path) -> None:
    config = Configuration()
    with pytest.raises(InvalidArgument, match="there is no option 'max-stepss'; did you mean 'max-steps'"):
        config.set_int("max-stepss", 5)
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


def test_a_program_that_was_executed_is_told_so() -> None:
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
