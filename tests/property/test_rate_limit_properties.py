"""Limits against simple models, with a clock that the test advances: whatever is requested when, they hold (A30)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.engines.job.limit_ledger import FileLedger
from emberflow.operators.admission.gate import Gate, MemoryLedger
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import BURST_S, LimitState
from tests.support.virtual_time import run

PAUSES = st.floats(0, 3)
ASKS = st.lists(st.tuples(PAUSES, st.integers(1, 40)), min_size=1, max_size=30)


@given(st.integers(1, 6_000), ASKS)
def test_no_window_has_more_starts_than_the_rate_and_the_burst(
    rate: int, asks: list[tuple[float, int]]
) -> None:
    state, limits = LimitState(), ModelLimits(requests_per_minute=rate)
    now, starts = 0.0, list[float]()
    for pause, count in asks:
        now += pause
        granted = state.reserve(limits, now, [0.0] * count)
        assert granted, "at least the first may start"
        assert all(start >= now for start in granted)
        starts += granted
    assert starts == sorted(starts), "no call is overtaken"
    # The simplest model of a token bucket: in a period it admits its rate times the period, plus its capacity.
    for first, start in enumerate(starts):
        for count, other in enumerate(starts[first:], start=1):
            assert count <= (other - start + BURST_S) * rate / 60 + 1 + 1e-6
    assert starts[-1] <= now + len(starts) * 60 / rate * 1.01, "and no start is wasted"


@given(st.integers(60, 100_000), st.lists(st.tuples(PAUSES, st.integers(0, 5_000)), min_size=1, max_size=30))
def test_tokens_are_paid_for(rate: int, calls: list[tuple[float, int]]) -> None:
    state, limits = LimitState(), ModelLimits(tokens_per_minute=rate)
    now, begun = 0.0, list[tuple[float, int]]()
    for pause, tokens in calls:
        now += pause
        (start,) = state.reserve(limits, now, [tokens])
        begun.append((start, tokens))
    for first, (start, _) in enumerate(begun):
        spent = 0
        for other, tokens in begun[first:]:
            # All but the last call of a window fit into it.
            assert spent <= (other - start + BURST_S) * rate / 60 + 1e-6
            spent += tokens


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["ask", "begin", "end", "leave"])), max_size=80
)


@given(st.integers(1, 12), STEPS)
def test_processes_together_stay_within_the_limit(limit: int, steps: list[tuple[str, str]]) -> None:
    """Each process knows only what it last read."""
    state, limits = LimitState(), ModelLimits(max_concurrent=limit)
    allowed, in_flight, waiting = (dict.fromkeys("abc", 0) for _ in range(3))
    for name, step in steps:
        if step == "ask":
            waiting[name] += 3
            allowed[name] = state.occupy(limits, name, in_flight[name], waiting[name]) or 0
        elif step == "begin" and waiting[name] and in_flight[name] < allowed[name]:
            waiting[name] -= 1
            in_flight[name] += 1
        elif step == "end" and in_flight[name]:
            in_flight[name] -= 1
        elif step == "leave" and not in_flight[name]:
            state.leave(name)
            allowed[name] = waiting[name] = 0
        assert sum(in_flight.values()) <= limit
    # No starvation: when the others have ended, a process gets everything it wants.
    for name in "abc":
        state.leave(name)
    assert state.occupy(limits, "a", 0, 100) == limit


class TooMany(Exception):
    status_code = 429
    retry_after = 0.5


CALLS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.floats(0, 0.5),
        st.sampled_from(["fine", "fine", "fine", "turned away once", "cancelled", "fails"]),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(
    st.one_of(st.none(), st.integers(1, 6)),
    st.one_of(st.none(), st.integers(30, 1_200)),
    st.integers(1, 3),
    CALLS,
)
def test_gates_lose_no_calls_and_respect_the_limits(
    most: int | None, rate: int | None, processes: int, calls: list[tuple[float, float, str]]
) -> None:
    ledger = MemoryLedger()
    limits = ModelLimits(max_concurrent=most, requests_per_minute=rate)
    gates = [Gate("c", limits, ledger) for _ in range(processes)]
    served, begun, now_in_flight = list[int](), list[float](), 0

    async def ask(number: int, takes_s: float, fate: list[str]) -> None:
        nonlocal now_in_flight
        begun.append(asyncio.get_running_loop().time())
        now_in_flight += 1
        assert most is None or now_in_flight <= most
        try:
            await asyncio.sleep(takes_s)
            if fate[0] == "turned away once":
                fate[0] = "fine"
                raise TooMany
            if fate[0] == "fails":
                raise ValueError
        finally:
            now_in_flight -= 1
        served.append(number)

    async def work() -> None:
        tasks: list[asyncio.Task[Any]] = []
        for number, (pause, takes_s, fate) in enumerate(calls):
            await asyncio.sleep(pause)
            kept = [fate]
            make = lambda n=number, t=takes_s, f=kept: ask(n, t, f)  # noqa: E731
            tasks.append(asyncio.create_task(gates[number % processes].call(make)))
            if fate == "cancelled":
                await asyncio.sleep(takes_s / 2)
                tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(5)

    run(work())
    wanted = [number for number, (_, _, fate) in enumerate(calls) if fate in ("fine", "turned away once")]
    assert set(wanted) <= set(served)
    assert len(served) == len(set(served)), "and none is made twice"
    assert all((gate.waiting, gate.in_flight) == (0, 0) for gate in gates)
    assert ledger.state.members == {}
    if rate is not None:
        begun.sort()
        for first, start in enumerate(begun):
            assert sum(other < start + 60 for other in begun[first:]) <= max(rate, 1) + 1


@settings(deadline=None, max_examples=30)
@given(limit=st.integers(1, 5), steps=STEPS)
def test_the_file_holds_the_same_state_as_memory(
    limit: int, steps: list[tuple[str, str]], tmp_path_factory: Any
) -> None:
    path: Path = tmp_path_factory.mktemp("ledger") / "model"
    memory, limits = MemoryLedger(), ModelLimits(max_concurrent=limit, requests_per_minute=60)
    for number, (name, step) in enumerate(steps):
        # A new reader every time, like another process.
        file = FileLedger(path)

        def change(state: LimitState, name: str = name, step: str = step, now: float = number / 10) -> Any:
            if step == "leave":
                return state.leave(name)
            if step == "end":
                return state.throttle(limits, now, state.epoch, 0.1)
            if step == "begin":
                return state.reserve(limits, now, [0.0])
            return state.occupy(limits, name, 0, 2)

        assert file.change(change) == memory.change(change)
        file.close()
    assert FileLedger(path).change(lambda state: state) == memory.state
