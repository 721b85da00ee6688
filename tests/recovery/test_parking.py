"""A slow call holds back neither another key nor the next micro-batch, and is made once (A13, A14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.agents import AgentsExecutionEnvironment
from emberflow.testing import SPARK, Host, literal_files, on_every_host, read_committed
from tests.recovery.slow_calls import SlowCalls, lines


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
    print(result)
