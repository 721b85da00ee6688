"""The agents' benchmarks: registration, their agents, their source's clock, and the output without LangGraph."""

from __future__ import annotations

import importlib.util
import time

import pytest

from benchmarks import agent_calls_local, agent_log_and_triggers, agent_two_actions_local
from benchmarks.agent_jobs import AwaitedCalls, ChainedCalls, OneCall, TwoActions, input_of, with_agent
from benchmarks.agent_latency import at
from benchmarks.agent_neighbours import langgraph_rows, loop_seconds
from benchmarks.agent_waiting_cpu import CALLS, CallsAtOnce
from benchmarks.due_source import DueSource
from benchmarks.measurement import Measure
from benchmarks.registry import BENCHMARKS
from emberflow.agents import Agent
from emberflow.streams import StreamExecutionEnvironment

INPUTS = [input_of(index) for index in range(200)]


def test_all_of_them_are_registered() -> None:
    assert [item.name for item in BENCHMARKS if item.name.startswith("agent_")] == [
        "agent_two_actions_local",
        "agent_two_actions_spark",
        "agent_calls_local",
        "agent_calls_spark",
        "agent_latency",
        "agent_waiting_cpu",
        "agent_log_and_triggers",
    ]


def test_the_two_action_agent_counts_per_key() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    with with_agent(env.from_collection(INPUTS), TwoActions()).execute_and_collect() as found:
        assert sorted(found) == [(index, 1 + index // 100) for index in range(200)]


def test_tiny_jobs_run() -> None:
    assert agent_two_actions_local.agent_seconds(INPUTS) > 0
    assert agent_two_actions_local.empty_seconds(INPUTS) > 0
    assert loop_seconds(INPUTS) > 0


@pytest.mark.parametrize(
    "agent", [OneCall(), ChainedCalls(), AwaitedCalls()], ids=lambda item: type(item).__name__
)
def test_agents_with_calls_answer_every_input(agent: Agent) -> None:
    assert agent_calls_local.agent_seconds(agent, keys=5, call_ms=1) > 0


@pytest.mark.parametrize("kind", ["ByType", "ByExpression", "ByPredicate"])
def test_every_kind_of_trigger_answers_every_input(kind: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    agent = getattr(agent_log_and_triggers, kind)()
    with with_agent(env.from_collection(INPUTS), agent).execute_and_collect() as found:
        assert len(list(found)) == len(INPUTS)


def test_a_row_says_that_langgraph_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(version: str) -> list[Measure]:
        raise AssertionError(version)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (row,) = langgraph_rows(rows)
    assert row.name == "LangGraph: not installed"
    assert row.bar is None


def test_the_due_source_stamps_by_one_clock() -> None:
    before = time.time()
    source = DueSource(records_per_s=10, count=20, keys=4)
    assert 1 <= source.available(0, 0, 0) <= 20
    assert source.available(0, 20, 0) == 0
    chunks = list(source.read(0, 0, 15))
    assert [len(chunk.values) for chunk in chunks] == [15, 5]
    assert source.plan(0, 0, 15) == (15, False)
    key, (due_s, read_s) = chunks[1].values[0]
    assert key == "k3"
    assert due_s >= before + 1.5
    assert read_s >= before


def test_calls_start_at_once_and_the_query_keeps_running() -> None:
    source = CallsAtOnce(call_ms=7)
    assert source.available(0, 0, 0) * source.CHANNELS == CALLS
    assert source.available(0, CALLS // 2, 60_000) == 0
    assert source.value(1, 0) == (1, 7)


def test_percentiles() -> None:
    assert [at([1.0, 2.0, 3.0, 4.0], percent) for percent in (0, 50, 99, 100)] == [1.0, 3.0, 4.0, 4.0]
