"""What actions use, on every host: triggers, resources, the event log, lists in and out, time to live."""

from __future__ import annotations

import threading
from pathlib import Path

from emberflow.agents import (
    Agent,
    AgentConfigOptions,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    RunnerContext,
)
from emberflow.observability.event_reader import read_events
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import SPARK, STREAMING_HOSTS, Cut, Host, Latch, TestSource, on_every_host, per_key
from tests.conformance.workshop import INPUTS, OUTPUTS, SECRET_VALUE, workshop
from tests.support.small_agents import CountingAgent, counted


@on_every_host
def test_triggers_resources_and_the_event_log(host: Host, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET_VALUE)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentConfigOptions.BASE_LOG_DIR, str(tmp_path / "log"))
        stream = env.from_collection(INPUTS)
        return (
            agents_env.from_datastream(stream, lambda value: value[0])
            .apply(workshop(str(secret)))
            .to_datastream()
        )

    found = host.run(build)

    assert per_key(found) == per_key(OUTPUTS)
    lines = list(read_events(tmp_path / "log"))
    types = [line["type"] for line in lines if line["key"] == "a"]
    assert types == ["_input_event", "Priced", "_output_event"] * 3
    assert {line["agent"] for line in lines} == {"Workshop"}
    ids = [line["id"] for line in lines]
    assert len(set(ids)) == len(ids)
    known = {line["id"]: line for line in lines}
    for line in lines:
        if line["type"] == "_output_event":
            assert known[known[line["upstream_id"]]["upstream_id"]]["type"] == "_input_event"
    assert SECRET_VALUE not in "".join(path.read_text() for path in (tmp_path / "log").rglob("*.jsonl"))


@on_every_host(nightly=[SPARK])
def test_lists_in_and_out(host: Host) -> None:
    inputs = [("a", 1), ("b", 2), ("a", 3)]
    agents_env = AgentsExecutionEnvironment.get_execution_environment(host.environment())
    outputs = (
        agents_env.from_list([{"key": word, "value": (word, number)} for word, number in inputs])
        .apply(CountingAgent())
        .to_list()
    )
    agents_env.execute("lists")
    assert per_key(outputs, lambda item: next(iter(item))) == {
        key: [{key: value} for value in values] for key, values in per_key(counted(inputs)).items()
    }


TTL_MS = 1_500


@on_every_host(hosts=STREAMING_HOSTS, nightly=[SPARK])
def test_memory_expires(host: Host) -> None:
    gone = Latch()
    source = TestSource(["a", "a", Cut(), gone, "a"])

    def remember(event: InputEvent, ctx: RunnerContext) -> None:
        seen = ctx.short_term_memory.get("seen", 0) + 1
        ctx.short_term_memory.set("seen", seen)
        if seen == 2:
            threading.Timer(TTL_MS / 1000 + 0.1, gone.open).start()
        ctx.send_event(OutputEvent((event.input, seen)))

    def build(env: StreamExecutionEnvironment) -> DataStream:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS, TTL_MS)
        agent = Agent("forgetful").add_action("remember", [InputEvent], remember)
        return (
            agents_env.from_datastream(env.add_source(source), lambda value: value)
            .apply(agent)
            .to_datastream()
        )

    assert host.run(build) == [("a", 1), ("a", 2), ("a", 1)]
