"""Agents run for what they do, like Flink's operators: also if no sink takes their outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.errors import InvalidArgument
from emberflow.testing import SPARK, Host, on_every_host


def noted(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def noting(folder: str) -> Agent:
    """Leaves a file in the folder for every input; one input is bad."""

    def note(event: InputEvent, ctx: RunnerContext) -> None:
        if event.input == "bad":
            raise ValueError("bad")
        Path(folder, event.input).touch()
        ctx.send_event(OutputEvent(event.input))

    return Agent("noting").add_action("note", [InputEvent], note)


@on_every_host(nightly=[SPARK])
def test_an_agent_without_a_sink_runs_with_what_is_behind_it(host: Host, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def behind(value: Any) -> Any:
        Path(folder, f"behind {value}").touch()
        return value

    env = AgentsExecutionEnvironment.get_execution_environment(host.environment())
    env.from_list([{"key": 1, "value": "a"}]).apply(noting(folder))
    inputs = [{"key": 1, "value": "b"}]
    env.from_list(inputs).apply(noting(folder)).to_datastream().map(behind)
    kept = env.from_list([{"key": 1, "value": "c"}]).apply(noting(folder)).to_list()

    env.execute()

    assert noted(folder) == ["a", "b", "behind b", "c"]
    assert kept == [{1: "c"}]
    with pytest.raises(InvalidArgument, match="executed already"):
        env.execute()


def test_its_failed_inputs_do_not_disappear(tmp_path: Path) -> None:
    """The sink of dead letters alone does not keep the steps behind the agent from being executed."""
    folder = str(tmp_path / "noted")
    Path(folder).mkdir()
    env = AgentsExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=tmp_path / "state"
    )
    env.get_config().set(AgentExecutionOptions.ON_ERROR, "dead-letter")
    applied = env.from_list([{"key": n, "value": n} for n in ("a", "bad")]).apply(noting(folder))
    applied.dead_letters().map(lambda letter: Path(folder, f"dead {letter['input']}").touch())
    env.execute()
    assert noted(folder) == ["a", "dead bad"]


def test_uids_are_needed_for_the_program_s_own_steps_only(tmp_path: Path) -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    env.env.get_config().disable_auto_generated_uids()
    inputs = env.env.from_collection(["a"]).uid("inputs").key_by(lambda value: value)
    env.from_datastream(inputs).apply(noting(str(tmp_path))).uid("noting")
    env.execute()
    assert noted(str(tmp_path)) == ["a"]


def test_a_stream_without_a_sink_is_not_executed(tmp_path: Path) -> None:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local")
    env.env.from_collection(["a"]).map(lambda value: Path(tmp_path, value).touch())
    with pytest.raises(InvalidArgument, match="no sink"):
        env.execute()
    assert noted(str(tmp_path)) == []
