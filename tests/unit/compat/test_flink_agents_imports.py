"""`import flink_agents…` resolves to emberflow while the hook is installed, and says what to do where it cannot."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow import agents
from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.main import main
from emberflow.compat.finder import installed, is_installed
from emberflow.compat.flink_agents import missing
from emberflow.compat.flink_agents.package import FLINK_AGENTS
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.errors import FlinkAgentsOnly
from emberflow.streams import StreamExecutionEnvironment


@pytest.fixture
def hook() -> Iterator[None]:
    with installed(FLINK_AGENTS):
        yield


def imported(name: str) -> Any:
    return importlib.import_module(name)


@pytest.mark.usefixtures("hook")
def test_names_are_emberflows() -> None:
    assert imported("flink_agents.api.agents.agent").Agent is agents.Agent
    assert imported("flink_agents.api.tools").InjectedArg is agents.InjectedArg
    assert imported("flink_agents.plan.configuration").AgentConfiguration is agents.Configuration
    assert imported("flink_agents.api.skills").BASH_TOOL == "bash"
    assert imported("pyflink.datastream").StreamExecutionEnvironment is StreamExecutionEnvironment


def test_programs_below_the_root_are_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flink Agents' quickstarts are modules of its package."""
    folder = tmp_path / "flink_agents" / "examples" / "quickstart"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "mine.py").write_text(
        "from flink_agents.api.agents.agent import Agent as Base\nNAME = __name__"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with installed(FLINK_AGENTS):
        mine = imported("flink_agents.examples.quickstart.mine")
        assert (mine.Base, mine.NAME) == (agents.Agent, "flink_agents.examples.quickstart.mine")
    assert [name for name in sys.modules if name.split(".")[0] in ("flink_agents", "pyflink")] == []


def test_an_example_in_a_clone_of_flink_agents_finds_its_neighbours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is started; the interface of the clone itself is not used."""
    folder = tmp_path / "python" / "flink_agents" / "examples" / "quickstart"
    (folder / "agents").mkdir(parents=True)
    (tmp_path / "python" / "flink_agents" / "__init__.py").write_text("raise AssertionError")
    (folder / "agents" / "shouting.py").write_text(PROGRAM.partition("env =")[0])
    neighbour = "from flink_agents.examples.quickstart.agents.shouting import *\n"
    (folder / "job.py").write_text(neighbour + "env =" + PROGRAM.partition("env =")[2])
    before = sys.path[:]
    program = str(folder / "job.py")
    assert main(["run", "--as", "flink-agents", program, "--engine", "local", "--quiet"]) == ExitCode.OK
    assert sorted(capsys.readouterr().out.split()) == ["A", "B"]
    assert sys.path == before


@pytest.mark.usefixtures("hook")
def test_options_are_emberflows_or_name_the_way_out() -> None:
    options = imported("flink_agents.api.core_options").AgentConfigOptions
    assert options.BASE_LOG_DIR is agents.AgentConfigOptions.BASE_LOG_DIR
    assert options.EVENT_LOG_TRACE_ENABLED.get_key() == "event-log.trace.enabled"
    for name, way_out in missing.OPTIONS.items():
        with pytest.raises(FlinkAgentsOnly, match=f"no option AgentConfigOptions.{name}") as failure:
            getattr(options, name)
        assert failure.value.way_out == way_out
    with pytest.raises(AttributeError, match="did you mean 'PRETTY_PRINT'"):
        _ = options.PRETTY_PRIN


def test_the_hook_leaves_one_that_was_there_before() -> None:
    with installed(PYFLINK):
        with installed(FLINK_AGENTS):
            imported("flink_agents.api.runner_context")
        assert is_installed(PYFLINK)
        assert not is_installed(FLINK_AGENTS)
        assert "flink_agents" not in sys.modules
    assert not is_installed(PYFLINK)


def test_importing_the_hook_imports_no_vendor() -> None:
    code = (
        "import emberflow.compat.flink_agents.install, sys\n"
        "import flink_agents.api.agents.agent, flink_agents.api.decorators, flink_agents.api.resource\n"
        "print([name for name in ('ollama', 'openai', 'anthropic', 'mcp', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


PROGRAM = """
from flink_agents.api.agents.agent import Agent
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.runner_context import RunnerContext
from pyflink.datastream import StreamExecutionEnvironment

class Shout(Agent):
    @action(EventType.InputEvent)
    @staticmethod
    def shout(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(output=InputEvent.from_event(event).input.upper()))

env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
words = env.from_collection(["a", "b"])
agents_env.from_datastream(input=words, key_selector=lambda x: x).apply(Shout()).to_datastream().print()
agents_env.execute("shouting")
"""


def test_a_flink_agents_program_runs_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    as_there = ["--as", "flink-agents", str(program), "--engine", "local"]
    assert main(["run", *as_there, "--quiet"]) == ExitCode.OK
    assert sorted(capsys.readouterr().out.split()) == ["A", "B"]
    program.write_text("from flink_agents.api.vector_stores.vector_store import Document")
    assert main(["run", *as_there]) == ExitCode.BAD_PROGRAM
    assert "there is no retrieval yet" in capsys.readouterr().err
    assert "flink_agents" not in sys.modules
