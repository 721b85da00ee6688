"""2,000 keys whose agents wait for calls, in one process, compared with LangGraph: one call of a second, five of 100 ms."""

from __future__ import annotations

import statistics
import time

from benchmarks.agent_jobs import AwaitedCalls, ChainedCalls, OneCall, with_agent
from benchmarks.agent_neighbours import graph_calls_seconds, langgraph_rows, langgraph_version
from benchmarks.measurement import Measure, Options, at_most
from emberflow.agents import Agent
from emberflow.streams import CollectSink, StreamExecutionEnvironment

KEYS = 2_000
CALL_MS, CHAINED_CALL_MS = 1_000, 100


def run(options: Options) -> list[Measure]:
    one, chained, awaited, graph_one, graph_chained = [], [], [], [], []
    for _ in range(options.pick(1, 5)):
        one.append(agent_seconds(OneCall(), KEYS, CALL_MS))
        chained.append(agent_seconds(ChainedCalls(), KEYS, CHAINED_CALL_MS))
        awaited.append(agent_seconds(AwaitedCalls(), KEYS, CHAINED_CALL_MS))
        if langgraph_version():
            graph_one.append(graph_calls_seconds(KEYS, 1, CALL_MS))
            graph_chained.append(graph_calls_seconds(KEYS, ChainedCalls.CALLS, CHAINED_CALL_MS))
    options.details.update(
        one_s=one, chained_s=chained, awaited_s=awaited, graph_one_s=graph_one, graph_chained_s=graph_chained
    )

    def beside_langgraph(version: str) -> list[Measure]:
        theirs_one, theirs_chained = statistics.median(graph_one), statistics.median(graph_chained)
        return [
            Measure(name="one 1 s call, LangGraph abatch", value=theirs_one, unit="s", note=version),
            Measure(name="five 100 ms calls, LangGraph abatch", value=theirs_chained, unit="s", note=version),
        ]

    return [
        Measure(name="one 1 s call", value=statistics.median(one), unit="s", bar=at_most(2)),
        Measure(
            name="five 100 ms calls, an action each",
            value=statistics.median(chained),
            unit="s",
            bar=at_most(1),
        ),
        Measure(
            name="five 100 ms calls, in one action",
            value=statistics.median(awaited),
            unit="s",
            bar=at_most(1),
        ),
        *langgraph_rows(beside_langgraph),
    ]


def agent_seconds(agent: Agent, keys: int, call_ms: int) -> float:
    """The whole job, from execute() to its end."""
    outputs: list[object] = []
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    stream = env.from_collection([(key, call_ms) for key in range(keys)])
    with_agent(stream, agent).sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
    started = time.perf_counter()
    env.execute("agent calls")
    took = time.perf_counter() - started
    if len(outputs) != keys:
        raise RuntimeError(f"{len(outputs)} outputs came instead of {keys}")
    return took
