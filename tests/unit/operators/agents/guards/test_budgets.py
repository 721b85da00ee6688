from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.agents import Agent, InputEvent, RunnerContext
from emberflow.errors import BudgetExceeded, InvalidArgument
from emberflow.operators.agents.guards.budgets import Budgets, KeySpending, added, check_amount
from emberflow.plan.agents.guards import Budget
from emberflow.testing import ManualClock
from tests.support.agent_harness import AgentHarness, Turn

HOUR = 3_600_000


def test_runs_and_keys_are_counted_separately() -> None:
    budgets = Budgets([Budget(tokens=10), Budget(tokens=15, per="key")])
    key = budgets.spent({}, {"tokens": 9}, now_ms=0)
    budgets.check(["tokens"], {"tokens": 9}, key, {"tokens": 1}, 0)
    with pytest.raises(BudgetExceeded, match=r"the run has spent 11 tokens; its budget is 10\n"):
        budgets.check(["tokens"], {"tokens": 9}, key, {"tokens": 2}, 0)
    with pytest.raises(BudgetExceeded, match=r"the key has spent 16 tokens; its budget is 15\n"):
        budgets.check(["tokens"], {}, key, {"tokens": 7}, 0)


def test_the_message_says_what_to_do() -> None:
    budgets = Budgets([Budget(cost=0.5, per="key", window_ms=HOUR)])
    with pytest.raises(BudgetExceeded) as caught:
        budgets.check(["cost"], {}, {}, {"cost": 0.75}, 0)
    assert str(caught.value) == (
        "BudgetExceeded [EF2207]: the key has spent 0.75 cost within 3,600,000 ms; its budget is 0.5\n"
        "  what to do: wait for the next window, raise the budget, or give the action a fallback"
    )


def test_only_the_requested_kinds_are_checked() -> None:
    """An exceeded budget of tokens does not stop actions that need none."""
    budgets = Budgets([Budget(tokens=10, steps=5)])
    budgets.check(["steps"], {"tokens": 50, "steps": 4}, {}, {"steps": 1}, 0)


def test_ahead_means_that_nothing_is_left() -> None:
    budgets = Budgets([Budget(tokens=10)])
    budgets.check(["tokens"], {"tokens": 9}, {}, {}, 0, ahead=True)
    budgets.check(["tokens"], {"tokens": 10}, {}, {}, 0)
    with pytest.raises(BudgetExceeded):
        budgets.check(["tokens"], {"tokens": 10}, {}, {}, 0, ahead=True)


def test_the_remaining_amount_is_the_minimum_of_all_budgets() -> None:
    budgets = Budgets([Budget(tokens=10), Budget(tokens=100, per="key")])
    assert budgets.left("tokens", {"tokens": 4}, {"0": (0, {"tokens": 99})}, {}, 0) == 1
    assert budgets.left("tokens", {"tokens": 40}, {}, {}, 0) == 0
    assert budgets.left("cost", {}, {}, {}, 0) is None


def test_a_window_ends_and_setting_back_the_clock_grants_nothing_twice() -> None:
    budgets = Budgets([Budget(tokens=10, per="key", window_ms=1_000)])
    key = budgets.spent({}, {"tokens": 10}, now_ms=5_400)
    assert key == {"1000": (5_000, {"tokens": 10})}
    for now_ms in (5_400, 5_999, 4_000):
        with pytest.raises(BudgetExceeded):
            budgets.check(["tokens"], {}, key, {"tokens": 1}, now_ms)
    budgets.check(["tokens"], {}, key, {"tokens": 10}, 6_000)
    assert budgets.spent(key, {"tokens": 3}, 6_000) == {"1000": (6_000, {"tokens": 3})}


def test_windows_of_removed_budgets_are_dropped() -> None:
    before: KeySpending = {"1000": (0, {"tokens": 3}), "0": (0, {"tokens": 8})}
    assert Budgets([Budget(tokens=10, per="key")]).spent(before, {"tokens": 1}, 100) == {
        "0": (0, {"tokens": 9})
    }
    assert Budgets([]).spent(before, {}, 100) == {}


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), True, "5", None])
def test_invalid_amounts(amount: Any) -> None:
    with pytest.raises(InvalidArgument, match="tokens cannot be"):
        check_amount("tokens", amount)


@settings(max_examples=200, deadline=None)
@given(
    spends=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 30)), max_size=30),
    limit=st.integers(0, 60),
    window_ms=st.sampled_from([None, 1, 700, 1_000]),
)
def test_windows_equal_a_list_of_all_that_was_spent(
    spends: list[tuple[int, int]], limit: int, window_ms: int | None
) -> None:
    budgets = Budgets([Budget(tokens=limit, per="key", window_ms=window_ms)])
    key: KeySpending = {}
    history: list[tuple[int, int]] = []
    for now_ms, amount in sorted(spends):
        history.append((now_ms, amount))
        in_window = sum(
            tokens
            for at_ms, tokens in history
            if window_ms is None or at_ms // window_ms == now_ms // window_ms
        )
        exceeded = False
        try:
            budgets.check(["tokens"], {}, key, {"tokens": amount}, now_ms)
        except BudgetExceeded:
            exceeded = True
        assert exceeded == (in_window > limit)
        key = budgets.spent(key, {"tokens": amount}, now_ms)
        assert budgets.left("tokens", {}, key, {}, now_ms) == max(0, limit - in_window)


def test_adding_up() -> None:
    assert added({"tokens": 1}, {"tokens": 2, "cost": 0.5}) == {"tokens": 3, "cost": 0.5}


class BatchClock(ManualClock):
    """Stops, like a micro-batch's clock, while real time continues."""

    live = 0

    def live_ms(self) -> int:
        return self.live


def test_a_detached_run_spends_from_the_window_of_the_current_time() -> None:
    left: list[float | None] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        await Turn()
        left.append(ctx.budget_left("tokens"))
        ctx.spend(tokens=6)

    clock = BatchClock()
    agent = Agent("a").add_action("act", [InputEvent], act)
    made = AgentHarness(agent.add_budget(Budget(tokens=10, per="key", window_ms=1_000)), clock=clock)
    made.send([("k", 1)])
    made.calls.finish_all()
    made.send([("k", 2)])
    made.park()
    clock.live = 1_000
    made.calls.finish_all()
    made.close()
    assert left == [10, 10], "the second run spends in the second window"
