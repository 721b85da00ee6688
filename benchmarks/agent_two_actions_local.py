"""A two-action agent with memory in one process, compared with a plain Python loop and LangGraph."""

from __future__ import annotations

import statistics
import time

from benchmarks.agent_jobs import TwoActions, input_of, with_agent, with_empty_step
from benchmarks.agent_neighbours import Inputs, graph_seconds, langgraph_rows, langgraph_version, loop_seconds
from benchmarks.measurement import Measure, Options, at_least, at_most
from emberflow.streams import DataStream, DiscardingSink, StreamExecutionEnvironment


def run(options: Options) -> list[Measure]:
    inputs = [input_of(index) for index in range(options.pick(50_000, 400_000))]
    # A graph takes about a millisecond per input, and keeps a checkpoint of each.
    few = inputs[: options.pick(1_000, 10_000)]
    agent, empty, loop, graph = [], [], [], []
    # In turns, so that other load on the machine affects all of them.
    for _ in range(options.pick(2, 5)):
        agent.append(agent_seconds(inputs) / len(inputs))
        empty.append(empty_seconds(inputs) / len(inputs))
        loop.append(loop_seconds(inputs) / len(inputs))
        if langgraph_version():
            graph.append(graph_seconds(few) / len(few))
    options.details.update(agent_s=agent, empty_s=empty, loop_s=loop, langgraph_s=graph)
    ours, without = statistics.median(agent), statistics.median(empty)
    plain = statistics.median(loop)

    def beside_langgraph(version: str) -> list[Measure]:
        theirs = statistics.median(graph)
        return [
            Measure(name="against LangGraph", value=theirs / ours, unit="×", note=version),
            Measure(name="LangGraph, two nodes", value=1 / theirs, unit="inputs/s", note=version),
        ]

    return [
        Measure(name="agent, local", value=1 / ours, unit="inputs/s", bar=at_least(60_000)),
        Measure(name="beyond an empty keyed step", value=(ours - without) * 1e6, unit="µs", bar=at_most(25)),
        Measure(name="empty keyed step", value=1 / without, unit="inputs/s"),
        Measure(name="time against a plain loop", value=ours / plain, unit="×"),
        Measure(name="plain Python loop", value=1 / plain, unit="inputs/s"),
        *langgraph_rows(beside_langgraph),
    ]


def agent_seconds(inputs: Inputs) -> float:
    return seconds(with_agent(_stream(inputs), TwoActions()))


def empty_seconds(inputs: Inputs) -> float:
    return seconds(with_empty_step(_stream(inputs)))


def _stream(inputs: Inputs) -> DataStream:
    return StreamExecutionEnvironment.get_execution_environment(engine="local").from_collection(inputs)


def seconds(outputs: DataStream) -> float:
    outputs.sink_to(DiscardingSink())
    started = time.perf_counter()
    outputs.get_execution_environment().execute("two actions")
    return time.perf_counter() - started
