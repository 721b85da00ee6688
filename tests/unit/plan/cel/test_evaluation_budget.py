"""The budget of a trigger expression: what is too expensive fails at once, everything else is unchanged."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

from emberflow.agents import Agent, Event, InputEvent, RunnerContext, action
from emberflow.errors import InvalidAgent
from emberflow.plan.cel.evaluation_budget import Meter, metered
from emberflow.plan.cel.expression import CelExpression, ConditionFailed
from emberflow.plan.cel.expression_text import tokens_of
from emberflow.testing import run_agent

MANY = list(range(20_000))
LARGE: dict[str, Any] = {"items": MANY, "words": [str(i) for i in MANY], "text": "a" * 1_000_000}


def event(**attributes: Any) -> Event:
    return Event(type="T", attributes=attributes)


@pytest.mark.parametrize(
    "text",
    [
        "items.all(x, items.exists(y, x == y))",
        "items.exists(x, items.exists(y, x + y < 0))",
        "items.exists(x, items.exists(y, false)) || true",
        "items.map(x, items.map(y, x + y)).size() > 0",
        "items.map(x, items).size() > 0",
        "items.map(x, x > 0, items).all(y, y.all(z, z >= 0))",
        "items.filter(x, items.exists_one(y, y == x)).size() > 0",
        "items.filter(x, x > 0).filter(x, x > 1).size() > 0",
        "items.all(x, x in items)",
        "items.all(x, items == items)",
        "[items].map(x, x.map(y, y)).size() > 0",
        "words.map(w, text + text).size() > 0",
        "words.exists(w, text.matches(w))",
    ],
)
def test_expensive_expressions_fail_soon(text: str) -> None:
    """Without the budget each of them takes from half a minute to years."""
    with pytest.raises(
        ConditionFailed, match=r"takes more than 100,000 steps; the option 'action.trigger-condi"
    ):
        CelExpression(text, "here").matches(event(**LARGE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("items.all(x, x >= 0)", True),
        ("items.exists(x, x == 19999) && items.all(x, x < 20000)", True),
        ("words.all(w, text.contains(w))", False),
        ("[items, items].all(a, a.all(b, b >= 0))", True),
        ("19999 in items", True),
    ],
)
def test_one_pass_over_large_lists_is_allowed(text: str, expected: bool) -> None:
    assert CelExpression(text, "here").matches(event(**LARGE)) is expected


def test_the_limit_is_a_setting() -> None:
    text, given = "items.all(x, x >= 0)", event(items=list(range(100)))
    assert CelExpression(text, "here", 100).matches(given)
    with pytest.raises(ConditionFailed, match="takes more than 99 steps"):
        CelExpression(text, "here", 99).matches(given)


VALUES: dict[str, Any] = {
    "items": [3, 1, 2],
    "none": [],
    "rows": [{"a": 1, "tags": ["x", "y"]}, {"a": 2, "tags": []}],
    "text": "abc",
}


@pytest.mark.parametrize(
    "text",
    [
        "items.all(x, x > 0)",
        "items.all(x, x > 1)",
        "items.exists(x, x == 2)",
        "none.exists(x, true) || none.all(x, false)",
        "items.exists_one(x, x > 2)",
        "items.map(x, x * 2) == [6, 2, 4]",
        "items.map(x, x > 1, x * 2) == [6, 4]",
        "items.filter(x, x > 1 // a comment ) ,\n) == [3, 2]",
        "rows.all(r, r.tags.all(t, t in ['x', 'y', \"),\"]))",
        "rows.map(r, r.tags.map(t, t + text)) == [['xabc', 'yabc'], []]",
        "rows.exists(r, r.a > 1 ? r.tags.exists(t, true) : r.tags.exists(t, t == 'y'))",
        "rows.filter(r, r.tags.filter(t, t == 'x').map(t, [t, t]) == [['x', 'x']]).size() == 1",
        "items.all(x, items.exists(y, y == x || (y > x && !(y < x))))",
        "items.all(x, x)",
        "items.exists(x, x)",
        "items.map(x, x / 0).size() == 3",
        "rows.all(r, r.missing > 1)",
    ],
)
def test_the_metered_form_has_the_same_result(text: str) -> None:
    cel: Any = importlib.import_module("cel")
    counted = metered(text, tokens_of(text), frozenset(VALUES))
    assert counted is not None

    def outcome(run: Any) -> Any:
        try:
            return run()
        except Exception as error:
            return type(error)

    meter = Meter([1] * len(counted.macros), 10_000)
    expected = outcome(lambda: cel.compile(text).execute(VALUES))
    assert outcome(lambda: meter.run(cel, cel.compile(counted.text), VALUES)) == expected


def test_additions_inside_macros_are_limited() -> None:
    """Each may double a value: fifty of them would be a petabyte."""
    doublings = "".join(f".map(v{i}, v{i} + v{i})" for i in range(20))
    with pytest.raises(InvalidAgent) as caught:
        CelExpression(f"['a']{doublings}.size() > 0", "here")
    assert caught.value.cause == "it has 20 additions inside macros; at most 10 are allowed"


def test_patterns_take_linear_time() -> None:
    assert not CelExpression("text.matches('(a+)+$b')", "here").matches(event(text="a" * 100_000))


class Careful(Agent):
    @action("items.all(x, items.exists(y, x == y))")
    @staticmethod
    def never(event: Event, ctx: RunnerContext) -> None:
        raise AssertionError("the condition cannot be evaluated")

    @action(InputEvent)
    @staticmethod
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Event(type="Question", attributes={"items": MANY}))


def test_an_agent_handles_it_like_any_failed_condition(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "emberflow.agents"):
        run_agent(Careful(), [1])
    assert "cannot be evaluated for events of type 'Question' and counts as false" in caplog.text
    assert "takes more than 100,000 steps" in caplog.text
