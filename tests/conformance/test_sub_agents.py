"""Agents that call agents, on both engines and across a crash (A24)."""

from __future__ import annotations

from pathlib import Path

from emberflow.agents import AgentConfigOptions, AgentsExecutionEnvironment
from emberflow.observability.event_reader import read_events
from emberflow.observability.event_runs import runs_of
from emberflow.observability.event_view import tree_lines
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import LOCAL, SPARK, SPARK_BATCH, Crash, Host, TestSource, on_every_host, per_key
from tests.support.sub_agents import Reader, asker, doubler


@on_every_host(hosts=(LOCAL, SPARK_BATCH, SPARK), nightly=[SPARK])
def test_agents_call_agents(host: Host, tmp_path: Path) -> None:
    source = TestSource([("a", 1), ("b", 5), Crash(), ("a", 2), ("b", 6)])

    def build(env: StreamExecutionEnvironment) -> DataStream:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "log"))
        stream = env.add_source(source)
        return agents_env.from_datastream(stream, lambda pair: pair[0]).apply(asker()).to_datastream()

    found = per_key(host.run_to_files(build, tmp_path / "out").values)

    # Their memory outlives the crash.
    assert found == {
        "a": [("a", 2, 1, "It is 3."), ("a", 4, 2, "It is 3.")],
        "b": [("b", 10, 1, "It is 3."), ("b", 12, 2, "It is 3.")],
    }
    runs = runs_of(read_events(tmp_path / "log"))
    assert len(runs) == 4
    for run in runs:
        assert {line["agent"] for line in run} == {"Asker", "doubler", "manager", "adder"}
        calls = [line["type"] for line in run if line["kind"] in ("call", "reused")]
        model = "chat model '_default_chat_model'"
        assert sorted(set(calls)) == sorted({"tool 'count'", model})


@on_every_host(hosts=(LOCAL, SPARK_BATCH, SPARK), nightly=[SPARK])
def test_chained_agents_are_one_run_in_the_event_log(host: Host, tmp_path: Path) -> None:
    """The second agent's inputs wait behind each other: where they come from is stored with them."""
    source = TestSource([("a", 1), ("b", 5), ("a", 2), Crash(), ("a", 3), ("b", 6)])

    def build(env: StreamExecutionEnvironment) -> DataStream:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "log"))
        stream = env.add_source(source)
        read = agents_env.from_datastream(stream, lambda pair: pair[0]).apply(Reader()).to_datastream()
        # What stateless steps make of an output still comes from it.
        chosen = read.flat_map(lambda found: [found, found]).filter(lambda found: found["number"] != 5)
        keyed = chosen.map(lambda found: found["number"])
        return agents_env.from_datastream(keyed, lambda _: "one key").apply(doubler()).to_datastream()

    found = per_key(
        (value["number"], value["times"]) for value in host.run_to_files(build, tmp_path / "out").values
    )

    assert {number: len(times) for number, times in found.items()} == {2: 2, 4: 2, 6: 2, 12: 2}
    runs = runs_of(read_events(tmp_path / "log"))
    assert sorted(run[0]["attributes"]["input"][1] for run in runs) == [1, 2, 3, 5, 6]
    for run in runs:
        number = run[0]["attributes"]["input"][1]
        outputs = [line["attributes"]["output"]["number"] for line in run if line["type"] == "_output_event"]
        assert sorted(outputs) == [number] + [number * 2] * (0 if number == 5 else 2)
        tree = list(tree_lines(run, width=120, color=False))
        assert sum("Doubler: _input_event" in line for line in tree) == (0 if number == 5 else 2)
