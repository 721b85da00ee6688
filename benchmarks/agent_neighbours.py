"""The agents' jobs as written without emberflow: a plain Python loop, and LangGraph's graphs.

LangGraph is imported on demand; if it is missing, a row says so.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import time
from collections.abc import Callable
from typing import Any, TypedDict

from benchmarks.measurement import Measure

Inputs = list[tuple[str, int]]


class CountState(TypedDict, total=False):
    number: int
    seen: int
    output: tuple[int, int]


class CallState(TypedDict, total=False):
    call_ms: int


def langgraph_version() -> str | None:
    """None if it is not installed."""
    if importlib.util.find_spec("langgraph") is None:
        return None
    return importlib.metadata.version("langgraph")


def langgraph_rows(make: Callable[[str], list[Measure]]) -> list[Measure]:
    """The rows that `make(version)` returns, or one that says why there are none."""
    version = langgraph_version()
    if version is None:
        note = "pip install langgraph, or make bench"
        return [Measure(name="LangGraph: not installed", value=0, unit="", note=note)]
    return make(f"langgraph {version}")


def loop_seconds(inputs: Inputs) -> float:
    """Two functions and a dictionary."""
    memory: dict[str, int] = {}
    outputs: list[tuple[int, int]] = []

    def count(key: str, number: int) -> tuple[int, int]:
        seen = memory.get(key, 0) + 1
        memory[key] = seen
        return number, seen

    def tell(number: int, seen: int) -> None:
        outputs.append((number, seen))

    started = time.perf_counter()
    for key, number in inputs:
        tell(*count(key, number))
    return time.perf_counter() - started


def graph_seconds(inputs: Inputs) -> float:
    """Two nodes and a checkpointer in memory; a key is a thread."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    def count(state: CountState) -> CountState:
        return {"seen": state.get("seen", 0) + 1}

    def tell(state: CountState) -> CountState:
        return {"output": (state["number"], state["seen"])}

    builder: Any = StateGraph(CountState)
    builder.add_node("count", count)
    builder.add_node("tell", tell)
    builder.add_edge(START, "count")
    builder.add_edge("count", "tell")
    builder.add_edge("tell", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    started = time.perf_counter()
    for key, number in inputs:
        graph.invoke({"number": number}, {"configurable": {"thread_id": key}})
    return time.perf_counter() - started


def graph_calls_seconds(keys: int, calls: int, call_ms: int) -> float:
    """This many nodes in a row with one call each; all keys at once with `abatch`."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    async def call(state: CallState) -> CallState:
        await asyncio.sleep(state["call_ms"] / 1000)
        return {"call_ms": state["call_ms"]}

    builder: Any = StateGraph(CallState)
    names = [f"call {number}" for number in range(calls)]
    for name in names:
        builder.add_node(name, call)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    graph = builder.compile(checkpointer=InMemorySaver())
    configs = [{"configurable": {"thread_id": str(key)}} for key in range(keys)]
    started = time.perf_counter()
    asyncio.run(graph.abatch([{"call_ms": call_ms}] * keys, configs))
    return time.perf_counter() - started
