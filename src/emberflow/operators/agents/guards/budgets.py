"""What an agent's runs and keys have spent, compared with its budgets.

What an action spends is counted when the action has ended, successfully or not: an action that is repeated after a crash,
or retried, spends once. Spending of a run is kept with the run, spending of a key in the key's entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from emberflow.errors import BudgetExceeded, InvalidArgument, shorten
from emberflow.plan.agents.guards import PER_RUN, Budget

Amounts = dict[str, float]
"""kind (steps, tokens, cost) -> amount"""
KeySpending = dict[str, tuple[int, Amounts]]
"""window -> (start of the window, 0 without a window; what was spent in it). Plain data, because it is stored."""

BudgetKind = Literal["steps", "tokens", "cost"]
KINDS: tuple[BudgetKind, ...] = get_args(BudgetKind)
PAID = ("tokens", "cost")


class Budgets:
    """An agent's budgets. Holds no amounts itself, so one object serves all keys."""

    __slots__ = ("_budgets", "_windows", "counts_steps")

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._budgets = tuple(budgets)
        self._windows = sorted({item.window_ms or 0 for item in self._budgets if item.per != PER_RUN})
        self.counts_steps = any(item.steps is not None for item in self._budgets)

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def check(
        self,
        kinds: Iterable[str],
        run: Mapping[str, float],
        key: KeySpending,
        pending: Mapping[str, float],
        now_ms: int,
        *,
        ahead: bool = False,
    ) -> None:
        """Raises BudgetExceeded if one of these kinds is exceeded; with `ahead`, also if it is used up."""
        wanted = set(kinds)
        for budget in self._budgets:
            before = run if budget.per == PER_RUN else _in_window(key, budget.window_ms or 0, now_ms)
            for kind, limit in budget.limits().items():
                spent = before.get(kind, 0) + pending.get(kind, 0)
                if kind in wanted and (spent > limit or (ahead and spent >= limit)):
                    raise _exceeded(budget, kind, spent, limit)

    def left(
        self, kind: str, run: Mapping[str, float], key: KeySpending, pending: Mapping[str, float], now_ms: int
    ) -> float | None:
        """How much may still be spent; None without a budget of this kind."""
        found = [
            limit
            - (run if item.per == PER_RUN else _in_window(key, item.window_ms or 0, now_ms)).get(kind, 0)
            - pending.get(kind, 0)
            for item in self._budgets
            if (limit := item.limits().get(kind)) is not None
        ]
        return max(0, min(found)) if found else None

    def spent(self, key: KeySpending, pending: Mapping[str, float], now_ms: int) -> KeySpending:
        """What a key has spent after an action has ended, without windows that are over or that no budget has."""
        found: KeySpending = {}
        for window_ms in self._windows:
            before = _in_window(key, window_ms, now_ms)
            found[str(window_ms)] = (_start(window_ms, now_ms), added(before, pending))
        return found


def added(before: Mapping[str, float], more: Mapping[str, float]) -> Amounts:
    """The sum of both."""
    return {kind: before.get(kind, 0) + more.get(kind, 0) for kind in {**before, **more}}


def check_amount(name: str, amount: Any) -> None:
    """Budgets only grow: `amount` must not be negative."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 <= amount < float("inf"):
        raise InvalidArgument(
            f"{name} cannot be {shorten(amount)}",
            way_out="spend a number of 0 or more: ctx.spend(tokens=120)",
        )


def _start(window_ms: int, now_ms: int) -> int:
    return now_ms - now_ms % window_ms if window_ms else 0


def _in_window(key: KeySpending, window_ms: int, now_ms: int) -> Amounts:
    start, amounts = key.get(str(window_ms), (0, {}))
    # If the clock was set back, stay in the window already reached: no budget is granted twice.
    return amounts if start >= _start(window_ms, now_ms) else {}


def _exceeded(budget: Budget, kind: str, spent: float, limit: float) -> BudgetExceeded:
    who = "the run" if budget.per == PER_RUN else "the key"
    when = f" within {budget.window_ms:,} ms" if budget.window_ms else ""
    return BudgetExceeded(
        f"{who} has spent {spent:,} {kind}{when}; its budget is {limit:,}",
        way_out=("wait for the next window, " if budget.window_ms else "")
        + "raise the budget, or give the action a fallback",
    )
