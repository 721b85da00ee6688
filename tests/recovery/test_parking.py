"""A slow call delays neither another key nor the next micro-batch, and is made once (A13, A14)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import AgentsExecutionEnvironment
from emberflow.errors import ActionFailed
from emberflow.streams import TumblingEventTimeWindows, WatermarkGenerator, WatermarkStrategy
from emberflow.testing import SPARK, Host, literal_files, on_every_host, read_committed
from tests.support.recovery.slow_calls import SlowCalls, lines, repeated_needlessly


def run(host: Host, inputs: list[Any], folder: Path) -> Any:
    env = host.environment(checkpoint_dir=folder / "checkpoints")
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    outputs = agents_env.from_datastream(env.from_collection(inputs), lambda value: value[0]).apply(
        SlowCalls(folder)
    )
    outputs.to_datastream().sink_to(literal_files(folder / "output")).uid("files")
    return env.execute("parking")


@on_every_host(hosts=[SPARK])
def test_slow_calls_are_parked_and_made_once(host: Host, tmp_path: Path) -> None:
    inputs = [("slow", 1, [3.5]), ("chained", 1, [1.5, 1.5, 0.1]), ("slow", 2, [0.05])]
    inputs += [(f"fast{number}", 1, [0.05]) for number in range(20)]
    result = run(host, inputs, tmp_path)

    expected = [("slow", 1, 1, 1), ("slow", 2, 1, 2), ("chained", 1, 3, 3)]
    expected += [(f"fast{number}", 1, 1, 1) for number in range(20)]
    found = read_committed(tmp_path / "output")
    assert sorted(found) == sorted(expected)
    begun = lines(tmp_path, "begun")
    assert len(begun) == len(set(begun)) == 25
    assert result.metrics.batches > 1


@on_every_host(hosts=[SPARK])
def test_a_worker_is_killed_while_calls_are_parked(host: Host, tmp_path: Path) -> None:
    inputs = [("dies", 1, [0.1, 1.6, -1, 0.1])]
    inputs += [(f"slow{number}", 1, [0.2, 3.0, 0.1]) for number in range(6)]
    run(host, inputs, tmp_path)

    assert (tmp_path / "died").exists()
    expected = [("dies", 1, 3, 3), *((f"slow{number}", 1, 3, 3) for number in range(6))]
    assert sorted(read_committed(tmp_path / "output")) == sorted(expected)
    assert len(set(lines(tmp_path, "ended"))) == 7 * 3
    assert repeated_needlessly(tmp_path) == [], (
        "a call is started again only if the process that ran it is gone"
    )
    keys = {tuple(line.split()[:2]) for line in (tmp_path / "begun").read_text().splitlines()}
    assert len(keys) == 7 * 3, "a repeated call has the same key"


@on_every_host(hosts=[SPARK])
def test_a_job_is_stopped_while_calls_are_parked(host: Host, tmp_path: Path) -> None:
    """In the same session the workers keep running: calls in flight are taken over, not made again."""
    inputs = [("fails", 1, [0.1, 1.5, -2])]
    inputs += [(f"slow{number}", 1, [0.2, 6.0]) for number in range(6)]
    with pytest.raises(ActionFailed, match="a crash"):
        run(host, inputs, tmp_path)
    assert repeated_needlessly(tmp_path) == []

    run(host, inputs, tmp_path)

    expected = [("fails", 1, 2, 2), *((f"slow{number}", 1, 2, 2) for number in range(6))]
    assert sorted(read_committed(tmp_path / "output")) == sorted(expected)
    assert len(set(lines(tmp_path, "ended"))) == 2 + 6 * 2
    assert repeated_needlessly(tmp_path) == []


class OnlyTheEnd(WatermarkGenerator):
    """Emits no watermarks; a channel's end is passed on without it."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        pass


@on_every_host(hosts=[SPARK])
def test_the_end_of_the_input_does_not_overtake_a_parked_run(host: Host, tmp_path: Path) -> None:
    """With a generator after the agent that replaces its watermarks: windows wait for parked runs."""
    inputs = [("slow", 1, [2.5]), *((f"fast{number}", 1, [0.05]) for number in range(5))]
    env = host.environment(checkpoint_dir=tmp_path / "checkpoints")
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    outputs = agents_env.from_datastream(env.from_collection(inputs), lambda value: value[0])
    stamped = WatermarkStrategy.for_generator(OnlyTheEnd).with_timestamp_assigner(
        lambda value, timestamp: 100
    )
    (
        outputs.apply(SlowCalls(tmp_path))
        .to_datastream()
        .assign_timestamps_and_watermarks(stamped)
        .key_by(lambda value: value[1])
        .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
        .reduce(lambda a, b: ("all", a[1], a[2] + b[2], 0))
        .sink_to(literal_files(tmp_path / "output"))
        .uid("files")
    )
    env.execute("parking")

    assert read_committed(tmp_path / "output") == [("all", 1, 6, 0)]
