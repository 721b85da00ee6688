"""Guards of an agent's actions: retry, timeout, fallback and budgets, as declared and as stored in a plan.

`plan/agents/actions.py` reads them from an agent, `check_guards` checks them when the plan is compiled;
`operators/agents/guards/attempts.py` and `operators/agents/guards/budgets.py` apply them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from emberflow.errors import InvalidAgent, shorten
from emberflow.events.output_tag import OutputTag
from emberflow.plan import json_functions

if TYPE_CHECKING:
    from emberflow.plan.agents.actions import Action

NAMES: Final = ("retry", "timeout_ms", "fallback")
"""The keyword arguments of `@action` and `add_action` that are guards."""
PER_RUN, PER_KEY = "run", "key"
DEAD_LETTERS = OutputTag[Any]("_dead_letters")
"""The side output of an agent's step for dead letters."""
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Runs a failed action again from its beginning, at most `attempts` times in total.

    Before attempt n it waits `backoff_ms · factor^(n-2)`, at most `max_backoff_ms`, shifted up or down by up to the
    fraction `jitter`. Only errors of the classes in `on` are retried; an exceeded budget never is.
    """

    attempts: int = 3
    backoff_ms: float = 200
    factor: float = 2.0
    max_backoff_ms: float = 30_000
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)

    def delay_ms(self, attempt: int, share: float) -> float:
        """The wait before an attempt (the second is number 2); `share` in [0, 1) selects the jitter."""
        # The exponent is bounded: a large one would overflow.
        grown = self.backoff_ms * self.factor ** min(attempt - 2, 200)
        return min(grown, self.max_backoff_ms) * (1 + self.jitter * (2 * share - 1))

    def to_json(self) -> dict[str, Any]:
        """The retry as stored in a plan."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "on"}
        return {**plain, "on": [json_functions.to_json(kind) for kind in self.on]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Retry:
        """The retry stored in a plan."""
        kinds: Any = tuple(json_functions.from_json(kind) for kind in data["on"])
        return Retry(**{**data, "on": kinds})

    def __str__(self) -> str:
        kinds = "" if self.on == (Exception,) else f" on {', '.join(kind.__name__ for kind in self.on)}"
        return f"{self.attempts} attempts, {self.backoff_ms:g} ms apart ×{self.factor:g}{kinds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards of one action."""

    retry: Retry | None = None
    timeout_ms: int | None = None
    fallback: str | None = None

    @property
    def waits(self) -> bool:
        """Whether the action must run like an `async` one, even if it is a plain function."""
        return self.retry is not None or self.timeout_ms is not None

    @staticmethod
    def of(given: Mapping[str, Any], where: str) -> Guards:
        """Reads guards from keyword arguments; raises InvalidAgent."""
        made = Guards(**{name: given.get(name) for name in NAMES})
        if made.retry is not None:
            _check_retry(made.retry, where)
        limit: Any = made.timeout_ms
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
            raise InvalidAgent(
                f"{where}: timeout_ms cannot be {shorten(limit)}",
                way_out="give whole milliseconds greater than 0, e.g. timeout_ms=30_000",
            )
        fallback: Any = made.fallback
        if fallback is not None and not (isinstance(fallback, str) and fallback):
            raise InvalidAgent(
                f"{where}: fallback cannot be {shorten(fallback)}",
                way_out='give the name of another action of the agent, e.g. fallback="say_sorry"',
            )
        return made

    def to_json(self) -> dict[str, Any]:
        """Contains only what is set, so that the plan of an agent without guards does not change."""
        found = {
            "retry": None if self.retry is None else self.retry.to_json(),
            "timeout_ms": self.timeout_ms,
            "fallback": self.fallback,
        }
        return {name: value for name, value in found.items() if value is not None}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Guards:
        retry = data.get("retry")
        return Guards(
            retry=None if retry is None else Retry.from_json(retry),
            timeout_ms=data.get("timeout_ms"),
            fallback=data.get("fallback"),
        )


NO_GUARDS = Guards()


def _check_retry(retry: Any, where: str) -> None:
    if not isinstance(retry, Retry):
        raise InvalidAgent(
            f"{where}: retry cannot be {shorten(retry)}", way_out="write retry=Retry(attempts=3)"
        )
    bad = None
    kinds: Any = retry.on
    if not _is_count(retry.attempts) or retry.attempts > MOST_ATTEMPTS:
        bad = f"attempts must be a whole number from 1 to {MOST_ATTEMPTS:,}, not {shorten(retry.attempts)}"
    elif not _is_number(retry.backoff_ms) or not _is_number(retry.max_backoff_ms):
        bad = "backoff_ms and max_backoff_ms must be milliseconds of 0 or more"
    elif not _is_number(retry.factor) or retry.factor < 1:
        bad = f"factor must be 1 or more, not {shorten(retry.factor)}"
    elif not _is_number(retry.jitter) or retry.jitter > 1:
        bad = f"jitter must be between 0 and 1, not {shorten(retry.jitter)}"
    elif not _are_errors(kinds):
        bad = f"on must be a tuple of exception classes, not {shorten(retry.on)}"
    if bad:
        raise InvalidAgent(f"{where}: {bad}", way_out="e.g. Retry(attempts=3, on=(ConnectionError,))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits steps, tokens or cost `per` run or key; with `window_ms`, of a key within that time.

    Steps are started actions; tokens and cost are the amounts passed to `ctx.spend()`.
    """

    steps: int | None = None
    tokens: int | None = None
    cost: float | None = None
    per: str = PER_RUN
    window_ms: int | None = None

    def limits(self) -> dict[str, float]:
        """The limits by kind, only those that are set."""
        found = {"steps": self.steps, "tokens": self.tokens, "cost": self.cost}
        return {kind: limit for kind, limit in found.items() if limit is not None}

    def check(self, where: str) -> None:
        """Raises InvalidAgent if the budget is invalid."""
        bad = None
        window: Any = self.window_ms
        if self.per not in (PER_RUN, PER_KEY):
            bad = f"per must be 'run' or 'key', not {shorten(self.per)}"
        elif window is not None and not _is_count(window):
            bad = f"window_ms must be whole milliseconds greater than 0, not {shorten(window)}"
        elif window is not None and self.per == PER_RUN:
            bad = "a window limits what a key spends in a time span, so it needs per='key'"
        elif not self.limits():
            bad = "a budget must limit steps, tokens or cost"
        for kind, limit in self.limits().items():
            if not _is_number(limit) or (kind != "cost" and not isinstance(limit, int)):
                kinds = "a number of 0 or more" if kind == "cost" else "a whole number of 0 or more"
                bad = f"{kind} must be {kinds}, not {shorten(limit)}"
        if bad:
            raise InvalidAgent(
                f"{where}: {bad}", way_out="e.g. Budget(tokens=100_000, per='key', window_ms=3_600_000)"
            )

    def to_json(self) -> dict[str, Any]:
        """The budget as stored in a plan."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Budget:
        """The budget stored in a plan."""
        return Budget(**data)

    def __str__(self) -> str:
        shown = " and ".join(f"{limit:,} {kind}" for kind, limit in self.limits().items())
        return f"{shown} per {self.per}" + (f" in {self.window_ms:,} ms" if self.window_ms else "")


def budgets_of(agent: Any, agent_name: str) -> tuple[Budget, ...]:
    """The budgets added with `add_budget`; raises InvalidAgent."""
    found: Iterable[Any] = getattr(agent, "budgets", ())
    made = tuple(found)
    for budget in made:
        where = f"agent {agent_name!r}"
        if not isinstance(budget, Budget):
            raise InvalidAgent(
                f"{where}: {shorten(budget)} is not a budget",
                way_out="add_budget(Budget(tokens=100_000, per='run'))",
            )
        budget.check(where)
    return made


def check_fallbacks(agent_name: str, actions: Mapping[str, Action]) -> None:
    """Checks that fallbacks are actions of the agent and have no cycle; raises InvalidAgent."""
    for name, action in actions.items():
        fallback = action.guards.fallback
        if fallback is None:
            continue
        where = f"agent {agent_name!r}, action {name!r}"
        if fallback not in actions:
            near = get_close_matches(fallback, actions, 1)
            raise InvalidAgent(
                f"{where}: its fallback {fallback!r} is not an action of the agent",
                way_out=f"did you mean {near[0]!r}?"
                if near
                else f"use one of {', '.join(map(repr, actions))}, or add an action with this name",
            )
        passed = [name]
        following: str | None = fallback
        while following is not None:
            if following in passed:
                shown = " -> ".join([*passed, following])
                raise InvalidAgent(
                    f"{where}: its fallbacks form a cycle",
                    cause=shown,
                    way_out="remove the fallback of one of them",
                )
            passed.append(following)
            found = actions.get(following)
            following = None if found is None else found.guards.fallback


def _is_number(value: Any) -> bool:
    # Written so that NaN and infinity fail.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _are_errors(kinds: Any) -> bool:
    if not isinstance(kinds, tuple) or not kinds:
        return False
    found: tuple[Any, ...] = kinds  # pyright: ignore[reportUnknownVariableType]
    return all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in found)
