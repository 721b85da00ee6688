"""Any partitioner delivers each record exactly once, whatever the batches and crashes; broadcast state equals a model."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.events.batch import Batch
from emberflow.events.key_groups import KeyGroups
from emberflow.operators.partitions.operator_state import redistributed, united
from emberflow.operators.partitions.routing import Router
from emberflow.plan.graphs.partitioning import Partitioner, PartitionerKind
from emberflow.state.entry import Entry
from emberflow.streams import KeyedBroadcastProcessFunction, MapStateDescriptor
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, Crash, Host, OperatorHarness, Pause, TestSource

ROUTED = [
    kind for kind in PartitionerKind if kind not in (PartitionerKind.CHANNEL, PartitionerKind.BROADCAST)
]


@given(
    kind=st.sampled_from(ROUTED),
    sizes=st.lists(st.integers(0, 7), max_size=5),
    tasks=st.integers(1, 5),
    sender=st.integers(0, 3),
    senders=st.integers(4, 6),
    seed=st.integers(0, 1000),
)
def test_each_record_goes_to_one_task(
    kind: PartitionerKind, sizes: list[int], tasks: int, sender: int, senders: int, seed: int
) -> None:
    partitioner = Partitioner(kind=kind, function=lambda key, count: key % count)

    def routed(cuts: list[int]) -> dict[int, list[Any]]:
        router, found, number = Router(partitioner, tasks, KeyGroups(64)), dict[int, list[Any]](), 0
        router.begin(sender, senders, seed)
        for size in cuts:
            values = list(range(number, number + size))
            number += size
            for task, part in router.parts(Batch(values, values, None, values)):
                assert part.timestamps == part.values
                found.setdefault(task, []).extend(part.values)
        return found

    found = routed(sizes)
    assert sorted(value for values in found.values() for value in values) == list(range(sum(sizes)))
    assert all(0 <= task < tasks for task in found)
    assert all(values == sorted(values) for values in found.values())
    # Where a batch is cut does not matter, so that a repeated one sends every record to the same task.
    assert {task: values for task, values in routed([sum(sizes)]).items() if values} == {
        task: values for task, values in found.items() if values
    }
    if kind is PartitionerKind.REBALANCE and sum(sizes):
        counts = [len(found.get(task, ())) for task in range(tasks)]
        assert max(counts) - min(counts) <= 1


def partitioned(stream: Any, names: list[str]) -> Any:
    for name in names:
        stream = getattr(stream, name)().map(lambda value: value).set_parallelism(1 + len(name) % 3)
    return stream


@settings(max_examples=15, deadline=None)
@given(
    host=st.sampled_from([LOCAL, LOCAL_2, LOCAL_SQLITE]),
    names=st.lists(st.sampled_from(["rebalance", "rescale", "shuffle", "global_"]), min_size=1, max_size=3),
    items=st.lists(st.integers(), max_size=12),
    batch=st.integers(1, 4),
    points=st.sets(st.integers(0, 12), max_size=2),
    pause=st.integers(0, 12),
)
def test_crashes_lose_and_repeat_nothing(
    host: Host, names: list[str], items: list[int], batch: int, points: set[int], pause: int
) -> None:
    disturbed: list[Any] = []
    for index, item in enumerate(items):
        disturbed += [Crash()] if index in points else []
        disturbed += [Pause(25)] if index == pause else []
        disturbed.append(item)
    source = TestSource(disturbed, batch)
    with tempfile.TemporaryDirectory() as folder:
        run = host.run_to_files(
            lambda env: partitioned(env.add_source(source), names), folder, checkpoint_interval_ms=10
        )
    assert Counter(run.values) == Counter(items)


RULES = MapStateDescriptor("rules")


class Shown(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        key, number = value
        if number is None:
            ctx.get_broadcast_state(RULES).remove(key)
        elif key == "c":
            ctx.get_broadcast_state(RULES).clear()
        else:
            ctx.get_broadcast_state(RULES).put(key, number)


def build(stream: Any, rules: Any) -> Any:
    return stream.key_by(lambda value: value % 3).connect(rules.broadcast(RULES)).process(Shown())


changes = st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9)))


@given(
    sent=st.lists(st.one_of(st.integers(0, 9), changes), max_size=25),
    crashes=st.sets(st.integers(0, 25), max_size=3),
)
def test_broadcast_state_is_what_a_dictionary_would_be(sent: list[Any], crashes: set[int]) -> None:
    harness, found, wanted = OperatorHarness(build, inputs=2), list[Any](), list[Any]()
    model: dict[str, int] = {}
    for number, item in enumerate(sent):
        if number in crashes:
            stored = harness.snapshot()
            found += harness.values
            harness = OperatorHarness(build, inputs=2, restore=stored)
        if isinstance(item, int):
            harness.send([item])
            wanted.append((item, dict(model)))
        else:
            harness.send([item], into=1)
            key, value = item
            if value is None:
                model.pop(key, None)
            elif key == "c":
                model.clear()
            else:
                model[key] = value
    assert found + harness.values == wanted


@given(
    lists=st.lists(st.lists(st.integers(), max_size=5), min_size=1, max_size=5),
    tasks=st.integers(1, 6),
)
def test_operator_state_is_distributed_evenly_and_whole(lists: list[list[int]], tasks: int) -> None:
    before = {task: Entry({"$list:a": items, "$union:b": items}) for task, items in enumerate(lists)}
    everything = [item for items in lists for item in items]
    after = redistributed(before, tasks)
    assert sorted(after) == list(range(tasks))
    parts = [entry.get("$list:a", []) for entry in after.values()]
    assert Counter(item for part in parts for item in part) == Counter(everything)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(entry.get("$union:b", []) == everything for entry in after.values())
    same = united(before, len(lists))
    assert [entry.get("$list:a", []) for entry in same.values()] == lists
    assert all(entry.get("$union:b", []) == everything for entry in same.values())
