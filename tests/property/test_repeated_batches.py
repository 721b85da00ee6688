"""A micro-batch decides once: whatever dies between its first group and Spark's commit, a repeated attempt has the same
result, and sinks, which ignore a batch they have committed, lose and repeat nothing (A13, C5)."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.agents import (
    Agent,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.engines.spark.worker import batch_record, worker_process
from tests.support.micro_batches import Death, MicroBatches
from tests.support.waiting_agents import SERVICE, Counts, Waits, graph

KEYS = "abc"


names = st.sets(
    st.sampled_from([f"{key}{number}.{call}" for key in KEYS for number in range(3) for call in (1, 2)])
)
batches = st.lists(
    st.tuples(
        st.lists(st.sampled_from(KEYS), max_size=3),
        st.lists(
            st.tuples(st.sampled_from([death for death in Death if death is not Death.NEVER]), names),
            max_size=2,
        ),
        names,
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@given(plan=batches, fails=names)
@settings(max_examples=40, deadline=None)
def test_a_repeated_batch_loses_and_repeats_nothing(plan: Any, fails: set[str]) -> None:
    check(plan, fails)


def check(plan: Any, fails: set[str]) -> None:
    """`plan`: batches of (keys of its inputs, deaths with what the service answers before them, what it answers then)."""
    SERVICE.__init__()
    SERVICE.fails = set(fails)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = MicroBatches(graph(), Path(folder), monkeypatch)
        try:
            for keys, deaths, answered in plan:
                inputs: list[Any] = []
                for key in keys:
                    inputs.append((key, counts[key]))
                    counts[key] += 1
                opened = iter([*(answers for _, answers in deaths), answered])
                query.run(
                    inputs,
                    [death for death, _ in deaths],
                    lambda opened=opened: SERVICE.answers.update(next(opened)),
                )
            SERVICE.everything = True
            for _ in range(200):
                query.run([], [], lambda: None)
                if not query.parked and len(query.committed) >= wanted(query.committed, counts):
                    break
        finally:
            query.end()
        assert_complete(query.committed, counts)


def wanted(found: list[Any], counts: Counter[str]) -> int:
    """Every input has an output or a letter, and an output is followed by a later one."""
    return 2 * counts.total() - sum(item[2] == "letter" for item in found)


def assert_complete(found: list[Any], counts: Counter[str]) -> None:
    ended = Counter((item[0], item[1]) for item in found if item[2] != "later")
    assert ended == Counter((key, number) for key, count in counts.items() for number in range(count))
    outputs = [item for item in found if len(item) == 4]
    assert all(
        item[2:] == (f"{item[0]}{item[1]}.1".upper(), f"{item[0]}{item[1]}.2".upper()) for item in outputs
    )
    later = Counter((item[0], item[1]) for item in found if item[2] == "later")
    assert later == Counter((item[0], item[1]) for item in outputs)
    for key in KEYS:
        numbers = [item[1] for item in found if item[0] == key and item[2] != "later"]
        assert numbers == sorted(numbers), "the order within a key is kept"


_PARKED_THEN_ANSWERED = [
    (["a", "b"], [(Death.BEFORE_SPARK_COMMITS, set[str]())], {"a0.1", "a0.2", "b0.1", "b0.2"})
]


def test_calls_that_end_while_a_committed_batch_is_repeated_are_not_lost() -> None:
    """Killed between the sink's commit and Spark's, with runs parked; the calls have ended when the batch is repeated."""
    check(_PARKED_THEN_ANSWERED, set())


def test_a_committed_failure_stays_a_failure() -> None:
    """The letter is in the sink: the repeated attempt must not see that the call succeeds now."""
    check([(["a"], [(Death.BEFORE_SPARK_COMMITS, {"a0.1"})], {"a0.1"})], {"a0.1"})


class Fragile(Agent):
    """Fails without a durable call, once."""

    @action(InputEvent)
    def only(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        seen = (ctx.short_term_memory.get("seen") or 0) + 1
        ctx.short_term_memory.set("seen", seen)
        if f"{key}{number}" in SERVICE.fails:
            SERVICE.fails.discard(f"{key}{number}")
            raise ConnectionError(key)
        ctx.send_event(OutputEvent((key, number, seen)))


def test_a_committed_failure_without_a_call_stays_a_failure() -> None:
    """The letter may be redriven: an action that had succeeded in the repeated attempt would then count twice."""
    SERVICE.__init__()
    SERVICE.fails = {"a0"}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = MicroBatches(graph(Fragile()), Path(folder), monkeypatch)
        try:
            query.run([("a", 0)], [Death.BEFORE_SPARK_COMMITS], lambda: None)
            query.run([("a", 1)], [], lambda: None)
        finally:
            query.end()
    assert query.committed == [("a", 0, "letter"), ("a", 1, 1)]


class Uneven(Waits):
    """Its first action may fail without a durable call."""

    @action(InputEvent)
    async def first(self, event: InputEvent, ctx: RunnerContext) -> None:
        if "a0" in SERVICE.fails:
            raise ConnectionError("a0")
        ctx.send_event(Event("asked", {"number": event.input[1], "answer": ""}))


def test_an_action_parked_by_a_lost_attempt_is_not_awaited_if_its_run_has_failed() -> None:
    """Held inputs hold back sources, and parked actions make batches run: neither may last forever."""
    SERVICE.__init__()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        query = MicroBatches(graph(Uneven()), Path(folder), monkeypatch)
        fails = iter([set[str](), {"a0"}])
        try:
            query.run([("a", 0)], [Death.BEFORE_THE_TASK_ENDS], lambda: SERVICE.fails.update(next(fails)))
            query.run([], [], lambda: None)
            (log,) = worker_process._logs.values()
            assert (query.committed, log.parked(), log.held_inputs()) == ([("a", 0, "letter")], [], Counter())
        finally:
            query.end()


def test_the_check_fails_if_a_repeated_batch_decides_again(monkeypatch: pytest.MonkeyPatch) -> None:
    find = batch_record.TaskRecord.__init__

    def forgetful(self: Any, store: Any, *rest: Any) -> None:
        class Empty:
            def __getattr__(self, name: str) -> Any:
                return lambda *args: None if name != "decide" else True

        find(self, Empty(), *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(batch_record.TaskRecord, "__init__", forgetful)
    with pytest.raises(AssertionError):
        _check_often(50)


def _check_often(times: int) -> None:
    """On a busy machine, a repeated attempt may reach its deadline before it notices that the calls have ended."""
    for _ in range(times):
        check(_PARKED_THEN_ANSWERED, set())


def test_an_outcome_based_on_discarded_memory_is_not_applied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the abandoned attempt the first input failed, and the second one ran without what it had written; in the repeated
    attempt the first one succeeds, while the second one's action is still running from before."""
    SERVICE.__init__()
    SERVICE.broken = {"a0"}
    query = MicroBatches(graph(Counts()), tmp_path, monkeypatch)
    query.kills = lambda: False
    try:
        query.run([("a", 0), ("a", 1)], [Death.BEFORE_THE_TASK_ENDS], lambda: SERVICE.answers.update({"a0"}))
        SERVICE.everything = True
        for _ in range(500):
            query.run([], [], lambda: time.sleep(0.002))
            if len(query.committed) == 2:
                break
    finally:
        query.end()
    assert query.committed == [("a", 0, 1), ("a", 1, 2)]
    assert SERVICE.made["a1"] == 1, "its answer is found in the log"


@pytest.mark.parametrize("death", [Death.BEFORE_THE_TASK_ENDS, Death.BEFORE_SPARK_COMMITS])
def test_a_call_that_raised_raises_again_in_a_repeated_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, death: Death
) -> None:
    """It would succeed by now, but its failure may have been committed."""
    SERVICE.__init__()
    SERVICE.fails = {"a0"}
    SERVICE.everything = True
    query = MicroBatches(graph(Counts()), tmp_path, monkeypatch)
    try:
        query.run([("a", 0), ("a", 1)], [death], lambda: None)
        for _ in range(500):
            if len(query.committed) == 2:
                break
            query.run([], [], lambda: time.sleep(0.002))
    finally:
        query.end()
    assert query.committed == [("a", 0, "letter"), ("a", 1, 1)]
    assert SERVICE.made == {"a0": 1, "a1": 1}
