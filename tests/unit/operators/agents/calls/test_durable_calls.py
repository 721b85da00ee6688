"""Durable calls of one action, with a log in memory that outlives it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, RecordedError, ReplayMismatch
from emberflow.events.run_ids import CallId
from emberflow.operators.agents.calls.call_descriptions import takes_idempotency_key
from emberflow.operators.agents.calls.durable_calls import (
    RAISED,
    RETURNED,
    STARTED,
    ActionCalls,
)
from tests.support.memory_log import MemoryLog


class World:
    """Counts its calls."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def ask(self, *args: Any) -> Any:
        self.asked.append(args)
        await asyncio.sleep(0)
        if args[0] == "fail":
            raise ValueError("no")
        return f"answer to {args[0]}"


def calls(log: MemoryLog, *, restarts: bool = False) -> ActionCalls:
    return ActionCalls(log, "step/run/1/", restarts=restarts)


async def make(action: ActionCalls, world: World, *args: Any, reconciler: Any = None) -> Any:
    call = action.next(world.ask, args, {})
    return await action.run(call, lambda: world.ask(*args), reconciler)


def test_gather_is_answered_in_order() -> None:
    log, world = MemoryLog(), World()

    async def both(action: ActionCalls) -> list[Any]:
        return list(await asyncio.gather(make(action, world, "a"), make(action, world, "b")))

    assert asyncio.run(both(calls(log))) == ["answer to a", "answer to b"]
    assert asyncio.run(both(calls(log))) == ["answer to a", "answer to b"]
    assert world.asked == [("a",), ("b",)]
    assert [record.outcome for record in log.records.values()] == [RETURNED, RETURNED]


def test_equal_arguments_match_whatever_their_identity() -> None:
    log, world = MemoryLog(), World()
    word = "text"
    asyncio.run(make(calls(log), world, word, [word, word], {"x": word}))
    asyncio.run(make(calls(log), world, "te" + "xt"[:2], ["text", "".join(["te", "xt"])], {"x": "text"}))
    assert len(world.asked) == 1


def test_different_calls_are_an_error_that_shows_both_sequences() -> None:
    log, world = MemoryLog(), World()
    asyncio.run(make(calls(log), world, "a", 1))
    with pytest.raises(ReplayMismatch) as caught:
        asyncio.run(make(calls(log), world, "b", 2))
    text = str(caught.value)
    assert "durable call 1 of the action was" in text
    assert "World.ask('a', 1) when it was recorded" in text
    assert "World.ask('b', 2) now" in text
    assert "on-replay-mismatch" in text


def test_a_mismatch_may_restart_from_there() -> None:
    log, world = MemoryLog(), World()

    async def three(action: ActionCalls, names: str) -> list[Any]:
        return [await make(action, world, name) for name in names]

    asyncio.run(three(calls(log), "abc"))
    world.asked.clear()
    asyncio.run(three(calls(log, restarts=True), "axc"))
    assert world.asked == [("x",), ("c",)]


def test_a_mismatch_in_a_branch_of_a_branch_restarts_everything_after_it() -> None:
    log, world = MemoryLog(), World()

    async def nested(action: ActionCalls, names: str) -> None:
        await make(action, world, names[0])
        outer = action.branch()
        inner = outer.branch()
        for name in names[1:4]:
            await make(inner, world, name)
        await make(outer, world, names[4])
        await make(action, world, names[5])

    asyncio.run(nested(calls(log), "abcdef"))
    ids = [call_id.removeprefix("step/run/1/") for call_id in log.records]
    assert ids == ["1", "2", "2.1.2", "2.1.3", "2.2", "3"]
    assert [str(CallId.parse(call_id)) for call_id in log.records] == list(log.records)
    world.asked.clear()
    asyncio.run(nested(calls(log, restarts=True), "abxdef"))
    assert world.asked == [("x",), ("d",), ("e",), ("f",)]


def test_a_call_that_raised_raises_again() -> None:
    log, world = MemoryLog(), World()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            asyncio.run(make(calls(log), world, "fail"))
    assert len(world.asked) == 1
    assert [record.outcome for record in log.records.values()] == [RAISED]


def test_a_call_that_raised_is_made_again_if_its_action_failed() -> None:
    log, world = MemoryLog(), World()
    for _ in range(2):
        action = calls(log)
        with pytest.raises(ValueError, match="no"):
            asyncio.run(make(action, world, "fail"))
        action.fail()
    assert len(world.asked) == 2
    assert log.records == {}


def test_a_reconciler_is_called_if_a_call_was_started() -> None:
    log, world = MemoryLog(), World()
    begun = calls(log).next(world.ask, ("a",), {})
    log.write_now(begun)
    assert begun.outcome == STARTED
    assert (
        asyncio.run(make(calls(log), world, "a", reconciler=lambda: "it had happened")) == "it had happened"
    )
    assert world.asked == []
    assert asyncio.run(make(calls(log), world, "a")) == "it had happened"


def test_a_reconciler_is_not_called_the_first_time() -> None:
    log, world = MemoryLog(), World()
    assert asyncio.run(make(calls(log), world, "a", reconciler=lambda: pytest.fail("asked"))) == "answer to a"


def test_plain_actions() -> None:
    log = MemoryLog()
    asked: list[int] = []

    def ask(number: int) -> int:
        asked.append(number)
        return number * 2

    for _ in range(2):
        action = calls(log)
        call = action.next(ask, (4,), {})
        assert action.run_now(call, lambda: ask(4), None) == 8
    assert asked == [4]


def test_an_error_whose_class_cannot_be_found_is_replaced() -> None:
    class Strange(Exception):
        def __reduce__(self) -> Any:
            raise TypeError("not me")

    log = MemoryLog()

    def ask() -> None:
        raise Strange("odd")

    action = calls(log)
    with pytest.raises(Strange):
        action.run_now(action.next(ask, (), {}), ask, None)
    action = calls(log)
    with pytest.raises(RecordedError, match="Strange: odd"):
        action.run_now(action.next(ask, (), {}), ask, None)


def test_idempotency_keys_are_passed_to_functions_that_accept_them() -> None:
    def takes(a: int, idempotency_key: str) -> None: ...

    def does_not(a: int) -> None: ...

    assert takes_idempotency_key(takes)
    assert not takes_idempotency_key(does_not)
    assert not takes_idempotency_key(len)


def test_a_plain_action_cannot_wait() -> None:
    class Waits:
        def __await__(self) -> Any:
            yield

    action = calls(MemoryLog())
    call = action.next(Waits, (), {})
    with pytest.raises(InvalidArgument, match="is asynchronous, but its action is not"):
        action.run_now(call, Waits, None)
