"""The arithmetic of limits shared by processes: starts of requests, shares of calls in flight, the effect of a 429."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import InvalidAgent
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import RAISE_EVERY_S, LimitState, fair_share

NONE = ModelLimits()
SIXTY = ModelLimits(requests_per_minute=60)


def starts(state: LimitState, limits: ModelLimits, now: float, count: int, tokens: float = 0) -> list[float]:
    found: list[float] = []
    while len(found) < count:
        found += state.reserve(limits, now, [tokens] * (count - len(found)))
    return [round(start - now, 2) for start in found]


def test_requests_are_spread_evenly() -> None:
    assert starts(LimitState(), SIXTY, 100.0, 4) == [0, 1.0, 2.01, 3.01]


def test_a_lease_extends_slightly_ahead_and_has_at_least_one_start() -> None:
    state = LimitState()
    fast = ModelLimits(requests_per_minute=6_000)
    first = state.reserve(fast, 100.0, [0] * 1_000)
    assert first[-1] <= 100.25
    assert 45 <= len(first) <= 55, "a burst of a quarter second, and a quarter second ahead"
    assert len(state.reserve(SIXTY, 0.0, [0] * 10)) == 1


def test_no_minute_has_more_requests_than_the_limit() -> None:
    state, limits = LimitState(), ModelLimits(requests_per_minute=600)
    begun = starts(state, limits, 0.0, 2_000)
    for first, moment in enumerate(begun):
        assert sum(moment <= other < moment + 60 for other in begun[first:]) <= 600
    assert begun[-1] < 2_000 / 600 * 60 * 1.02, "and little is wasted"


def test_a_large_call_starts_and_delays_those_behind_it() -> None:
    state, limits = LimitState(), ModelLimits(tokens_per_minute=60_000)
    assert starts(state, limits, 0.0, 3, tokens=5_000) == [0, 4.77, 9.79]


def test_tokens_are_corrected_when_the_answer_arrives() -> None:
    guessed, known = LimitState(), LimitState()
    limits = ModelLimits(tokens_per_minute=60_000)
    guessed.reserve(limits, 0.0, [1_000])
    guessed.settle(limits, 2_000)
    known.reserve(limits, 0.0, [3_000])
    assert guessed.tokens_at == pytest.approx(known.tokens_at)


@pytest.mark.parametrize(
    ("limit", "wanted", "shares"),
    [
        (10, {"a": 3}, {"a": 3}),
        (10, {"a": 100, "b": 100}, {"a": 5, "b": 5}),
        (10, {"a": 2, "b": 100}, {"a": 2, "b": 8}),
        (7, {"a": 100, "b": 100, "c": 100}, {"a": 2, "b": 2, "c": 3}),
        (1, {"a": 5, "b": 5}, {"a": 0, "b": 1}),
    ],
    ids=["alone", "even", "one wants little", "what is left over", "one for two"],
)
def test_shares(limit: int, wanted: dict[str, int], shares: dict[str, int]) -> None:
    assert {name: fair_share(limit, wanted, name) for name in wanted} == shares


def test_grants_belong_to_their_process_until_they_are_returned() -> None:
    state, limits = LimitState(), ModelLimits(max_concurrent=10)
    assert state.occupy(limits, "a", 0, 50) == 10
    assert state.occupy(limits, "b", 0, 50) == 0
    assert state.occupy(limits, "a", 10, 40) == 5, "its share, but ten are in flight"
    assert state.occupy(limits, "b", 0, 50) == 0
    assert state.occupy(limits, "a", 7, 40) == 5
    assert state.occupy(limits, "b", 0, 50) == 3
    state.leave("a")
    assert state.occupy(limits, "b", 3, 50) == 10


def test_a_429_pauses_and_lowers_limits_which_recover_slowly() -> None:
    state = LimitState()
    state.occupy(NONE, "a", 40, 0)
    state.succeeded(100.0, 0, 20)
    state.succeeded(101.0, 0, 20)
    assert state.throttle(NONE, 101.0, 0, 3.0) == 3.0
    assert (state.paused_until, state.concurrency(NONE)) == (104.0, 20)
    assert state.request_rate(NONE) == pytest.approx(0.9 * 40 / (1 + 3))
    assert state.reserve(NONE, 101.0, [0]) == [104.0]

    state.recover(NONE, 104.0 + RAISE_EVERY_S)
    assert state.concurrency(NONE) == 20, "nothing has been tried since"
    after_calls(state, NONE, 110.0, 1)
    assert state.concurrency(NONE) == 22
    after_calls(state, NONE, 120.0, 200)
    assert (state.concurrency(NONE), state.request_rate(NONE)) == (None, None)


def after_calls(state: LimitState, limits: ModelLimits, now: float, times: int) -> None:
    for _ in range(times):
        now += RAISE_EVERY_S
        state.succeeded(now, state.epoch, 1)
        state.recover(limits, now)


def test_calls_in_flight_lower_the_limits_once() -> None:
    state = LimitState()
    state.occupy(NONE, "a", 40, 0)
    state.throttle(NONE, 100.0, 0, 1.0)
    state.throttle(NONE, 100.1, 0, 2.0)
    assert (state.concurrency(NONE), state.epoch) == (20, 1)
    assert state.paused_until == pytest.approx(102.1), "but the longest pause counts"


def test_a_rate_is_learned_from_accepted_requests() -> None:
    """60 per minute, all of them in the first second: the pause reveals the rest."""
    state = LimitState()
    state.succeeded(100.2, 0, 60)
    state.throttle(NONE, 101.0, 0, 59.0)
    assert state.request_rate(NONE) == pytest.approx(0.9, rel=0.05)


def test_successes_that_another_process_reports_late_count() -> None:
    state = LimitState()
    state.succeeded(100.0, 0, 10)
    state.throttle(NONE, 100.5, 0, 1.0)
    before = state.request_rate(NONE)
    state.succeeded(100.9, 0, 5)
    after = state.request_rate(NONE)
    assert before is not None
    assert after is not None
    assert after == pytest.approx(1.5 * before)


def test_a_rate_is_learned_from_calls_that_end_after_the_first_429() -> None:
    """The first 429 of a burst often comes before the first answer; the second burst must not be half of the first."""
    state = LimitState()
    state.throttle(NONE, 100.5, 0, 1.0)
    assert state.request_rate(NONE) is None
    for _ in range(10):
        state.succeeded(100.9, 0, 1)
    assert state.request_rate(NONE) == pytest.approx(0.9 * 10 / (1 + 1)), (
        "ten in a second, and a second's pause"
    )
    after_calls(state, NONE, 102.0, 1)
    assert state.request_rate(NONE) == pytest.approx(1.25 * 4.5), "a burst says little about the steady rate"


def test_calls_that_end_after_a_limit_was_lifted_do_not_bring_it_back() -> None:
    state = LimitState()
    state.succeeded(100.0, 0, 10)
    state.throttle(NONE, 100.5, 0, 1.0)
    after_calls(state, NONE, 110.0, 200)
    assert state.request_rate(NONE) is None
    state.succeeded(2_000.0, 0, 5)
    assert state.request_rate(NONE) is None


def test_without_a_requested_time_the_pause_grows() -> None:
    state = LimitState()
    waits = [state.throttle(NONE, 100.0, epoch, None) for epoch in range(9)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    state.succeeded(200.0, state.epoch, 1)
    assert state.throttle(NONE, 200.0, state.epoch, None) == 0.5


def test_a_learned_limit_never_exceeds_the_descriptors() -> None:
    state, limits = LimitState(), ModelLimits(max_concurrent=4, requests_per_minute=60)
    state.occupy(limits, "a", 0, 100)
    for second in range(100):
        state.succeeded(100.0 + second, 0, 1_000)
    state.throttle(limits, 200.0, 0, 1.0)
    assert (state.concurrency(limits), state.request_rate(limits)) == (2, 0.95)
    after_calls(state, limits, 300.0, 20)
    assert (state.concurrency(limits), state.request_rate(limits)) == (4, 1.0)


def test_the_state_as_data() -> None:
    state = LimitState()
    state.occupy(ModelLimits(max_concurrent=3), "a", 1, 5)
    state.succeeded(5.0, 0, 2)
    state.throttle(NONE, 6.0, 0, 1.0)
    assert LimitState.from_json(state.to_json()) == state


def test_limits_are_taken_out_of_a_descriptors_arguments() -> None:
    arguments = {"url": "x", "max_concurrent": 4, "requests_per_minute": 1.5, "max_waiting": None}
    limits, rest = ModelLimits.taken_from("connection 'c'", arguments, ())
    assert limits == ModelLimits(max_concurrent=4, requests_per_minute=1.5)
    assert rest == {"url": "x"}
    assert ModelLimits.taken_from("c", arguments, ["max_concurrent"])[1] == {"url": "x", "max_concurrent": 4}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_concurrent", 0),
        ("max_concurrent", 1.5),
        ("requests_per_minute", "9"),
        ("tokens_per_minute", True),
    ],
)
def test_invalid_limits(name: str, value: Any) -> None:
    with pytest.raises(InvalidAgent, match=f"the connection 'c': {name} is") as caught:
        ModelLimits.taken_from("connection 'c'", {name: value}, ())
    assert "at least 1" in str(caught.value)


def test_shares_of_processes_without_a_common_ledger() -> None:
    whole = ModelLimits(max_concurrent=5, requests_per_minute=60, tokens_per_minute=1_000)
    assert whole.divided(4) == ModelLimits(max_concurrent=1, requests_per_minute=15, tokens_per_minute=250)
    assert NONE.divided(4) == NONE
