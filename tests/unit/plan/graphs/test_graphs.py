"""Stream graph, job graph, uids, and their forms as text, Mermaid and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.errors import DuplicateUid, InvalidArgument
from emberflow.plan.graphs.job_graph import JobGraph, StageKind, compile_graph, idle_timeouts
from emberflow.plan.graphs.stream_graph import StreamGraph
from emberflow.streams import (
    DataStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
    WatermarkGenerator,
    WatermarkStrategy,
)

LATE = OutputTag("late")


class Split(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def first(value: Any) -> Any:
    return value[0]


def program(env: StreamExecutionEnvironment) -> Any:
    stream = env.from_collection([("a", 1)]).map(lambda value: value).name("clean")
    totals = stream.key_by(first).sum(1).name("totals").filter(lambda value: True)
    totals.print()
    return totals


def chains(env: StreamExecutionEnvironment) -> list[list[str]]:
    graph = env.job_graph()
    return [
        [graph.stream_graph.node(node).name for node in chain]
        for stage in graph.stages
        for chain in stage.chains
    ]


def test_a_program_is_cut_at_its_shuffles() -> None:
    env = environment()
    program(env)
    graph = env.job_graph()
    assert [stage.kind for stage in graph.stages] == [StageKind.SOURCE, StageKind.KEYED]
    assert [stage.level for stage in graph.stages] == [0, 1]
    assert [(item.source_stage, item.target_stage, item.edge.key_name) for item in graph.exchanges] == [
        (0, 1, "first")
    ]
    assert chains(env) == [["collection", "clean"], ["totals", "filter", "Print to Std. Out"]]


def test_chains_break_where_they_are_told_to() -> None:
    env = environment()
    stream = (
        env.from_collection([1]).map(str).name("a").map(str).name("b").map(str).name("c").map(str).name("d")
    )
    assert chains(env) == [["collection", "a", "b", "c", "d"]]
    stream.start_new_chain()
    assert chains(env) == [["collection", "a", "b", "c"], ["d"]]
    stream.disable_chaining()
    stream.map(str).name("e").set_parallelism(3).map(str).name("f").set_parallelism(3)
    assert chains(env) == [["collection", "a", "b", "c"], ["d"], ["e", "f"]]


def test_a_step_behind_a_union_belongs_to_every_stage_that_feeds_it() -> None:
    env = environment()
    one, two = env.from_collection([1]), env.from_collection([2])
    one.union(two).map(str).name("both").key_by(len).map(str)
    graph = env.job_graph()
    assert [stage.nodes for stage in graph.stages] == [(0, 2), (1, 2), (3,)]
    assert [(item.source_stage, item.target_stage) for item in graph.exchanges] == [(0, 2), (1, 2)]
    assert len({item.id for item in graph.exchanges}) == 2


def test_side_outputs_and_two_inputs_in_the_graph() -> None:
    env = environment()
    main = env.from_collection([1]).flat_map(lambda n: [n])
    side = main.get_side_output(OutputTag("side"))
    from emberflow.streams import CoMapFunction

    main.key_by(str).connect(side.key_by(str)).map(CoMapFunction())
    graph = env.job_graph()
    assert [(item.edge.side_tag, item.input_index) for item in graph.exchanges] == [(None, 0), ("side", 1)]


def test_idle_timeouts_belong_to_the_last_strategy() -> None:
    env = environment()
    early = (
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, t: v).with_idleness(5)
    )
    late = WatermarkStrategy.for_generator(WatermarkGenerator).with_timestamp_assigner(lambda v, t: v)
    stream = env.from_collection([1]).assign_timestamps_and_watermarks(early).map(lambda n: n)
    stream.key_by(str).map(str)
    stream.assign_timestamps_and_watermarks(late.with_idleness(9)).key_by(str).map(str)
    graph = env.job_graph()
    by_target = {
        graph.stream_graph.node(graph.stages[item.target_stage].head).spec.kind: idle_timeouts(graph).get(
            item.id
        )
        for item in graph.exchanges
    }
    assert by_target == {"keyed_map": 9, "watermark_generator": 5}


def test_json_keeps_everything_but_the_functions() -> None:
    env = environment()
    program(env)
    text = env.explain("json")
    again = JobGraph.from_json(text)
    assert json.loads(again.to_json()) == json.loads(text)
    graph = env.job_graph()
    assert [(stage.nodes, stage.chains, stage.level) for stage in again.stages] == [
        (stage.nodes, stage.chains, stage.level) for stage in graph.stages
    ]
    assert json.loads(compile_graph(StreamGraph.from_json(text)).to_json()) == json.loads(text)
    data = json.loads(text)
    with pytest.raises(InvalidArgument, match="format 99"):
        StreamGraph.from_json(json.dumps({**data, "format": 99}))


def test_text() -> None:
    env = environment()
    program(env)
    lines = env.explain().splitlines()
    assert lines[0] == "job 'emberflow job': 2 stages, 1 shuffles"
    assert lines[1] == "stage 0 (source)"
    assert lines[2].startswith("  ── collection [source-")
    assert lines[3].startswith("  └─ clean [map-")
    assert "at test_graphs.py:" in lines[3]
    assert lines[4] == "stage 1 (keyed) <- stage 0 by first"


def test_mermaid() -> None:
    env = environment()
    env.from_collection([1]).name('a "b" <c>').key_by(lambda n: n).sum().print()
    text = env.explain("mermaid")
    assert text.startswith("flowchart LR\n")
    assert "a #quot;b#quot; #lt;c#gt;" in text
    assert '==>|"by ' in text
    assert text.count("subgraph") == text.count("  end") == 2


def test_uids_are_stable_as_long_as_the_program_is() -> None:
    def uids(build: Any) -> dict[str, str]:
        env = environment()
        build(env)
        return {node.name: node.uid for node in env.job_graph().stream_graph.nodes}

    def changed_behind(env: Any) -> Any:
        return program(env).map(str).name("more")

    def changed_before(env: Any) -> Any:
        stream = env.from_collection([("a", 1)]).filter(bool).map(lambda value: value).name("clean")
        stream.key_by(first).sum(1).name("totals").print()

    before = uids(program)
    assert uids(program) == before
    assert len(set(before.values())) == len(before)
    assert {name: uid for name, uid in uids(changed_behind).items() if name != "more"} == before
    assert uids(changed_before)["totals"] != before["totals"]


def test_steps_that_look_alike_have_uids_of_their_own() -> None:
    env = environment()
    stream = env.from_collection([1])
    stream.map(str)
    stream.map(str)
    env.from_collection([1])
    uids = [node.uid for node in env.job_graph().stream_graph.nodes]
    assert len(set(uids)) == 4


def test_explicit_uids() -> None:
    env = environment()
    stream = env.from_collection([1]).uid("source").map(str).uid("text")
    assert [node.uid for node in env.job_graph().stream_graph.nodes] == ["source", "text"]
    stream.map(str).uid("text")
    with pytest.raises(DuplicateUid):
        env.job_graph()
    for wrong in ("", None, 5):
        with pytest.raises(InvalidArgument):
            stream.uid(wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="before union"):
        stream.union(stream).uid("both")


def test_only_what_a_sink_needs_is_run() -> None:
    env = environment()
    used = env.from_collection([1]).name("used")
    env.from_collection([2]).name("unused").map(str)
    used.print()
    graph = env._new_graph("job")
    assert [node.name for node in graph.stream_graph.nodes] == ["used", "Print to Std. Out"]


def test_only_steps_behind_a_union_that_need_all_of_it_have_a_stage_of_their_own() -> None:
    class Same(MapFunction[int, int]):
        def map(self, value: int) -> int:
            return value

    def stages(build: Callable[[DataStream[int], DataStream[int]], DataStream[int]]) -> list[StageKind]:
        env = environment()
        build(env.from_collection([1]), env.from_collection([2])).print()
        return [stage.kind for stage in env.job_graph().stages]

    source, own = StageKind.SOURCE, StageKind.PARTITIONED
    assert stages(lambda one, two: one.union(two).map(lambda value: value)) == [source, source]
    assert stages(lambda one, two: one.union(two).map(Same())) == [source, source, own]
    assert stages(lambda one, two: one.union(one).map(lambda value: value)) == [source, source, own]
    assert stages(lambda one, two: one.union(one)) == [source, source]
    assert stages(lambda one, two: one.union(two).union(two.filter(bool)).map(abs)) == [source, source, own]


def test_settings_of_a_side_output_are_not_those_of_its_step() -> None:
    env = environment()
    main = env.from_collection([1, 2]).process(Split()).name("main").uid("main-uid")
    late = main.get_side_output(LATE).name("late").uid("late-uid").set_parallelism(1)
    main.union(late.map(lambda value: -value)).print()
    nodes = {node.uid: node for node in env.job_graph().stream_graph.nodes}
    assert (nodes["main-uid"].name, nodes["main-uid"].parallelism) == ("main", None)
    assert (nodes["late-uid"].name, nodes["late-uid"].parallelism) == ("late", 1)
    assert [edge.side_tag for edge in nodes["late-uid"].inputs] == [LATE.tag_id]
