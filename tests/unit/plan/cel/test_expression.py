"""Trigger expressions: what they can use, what they reject, and how they are pickled."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from emberflow.agents import Event, InputEvent, OutputEvent
from emberflow.errors import InvalidAgent, PackageMissing
from emberflow.plan.cel.expression import CelExpression, ConditionFailed

pydantic = pytest.importorskip("pydantic", reason="A5: an event may hold Pydantic models")


class Scored(Event):
    score: int
    reason: str = ""


class Level(Enum):
    HIGH = "high"


@dataclass(slots=True)
class User:
    name: str
    age: int


class Order(pydantic.BaseModel):
    total: float
    items: list[str]


class Loose(pydantic.BaseModel, extra="allow"):  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    known: int


Point = namedtuple("Point", "x y")


class Bare:
    def __init__(self) -> None:
        self.size = 3
        self._hidden = 4


def holds(text: str, event: Event) -> bool:
    return CelExpression(text, "here").matches(event)


SCORED = Scored(score=6, reason="late")
PLAIN = Event(type="Scored", attributes={"score": 6, "reason": "late"})


@pytest.mark.parametrize("event", [SCORED, PLAIN], ids=["class", "plain"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("score > 5", True),
        ("score > 6", False),
        ("attributes.score > 5", True),
        ("attributes['score'] == 6", True),
        ("type == 'Scored' && score > 5", True),
        ("'Scored' == type", True),
        ("type == 'Other' && nothing.at.all", False),
        ("type in ['Other', 'Scored']", True),
        ("type in ['Other', EventType.InputEvent]", False),
        ("type == 'Other' || score == 6", True),
        ("type != EventType.InputEvent", True),
        ("type.startsWith('Sc') && reason.matches('^l')", True),
        ("has(attributes.score) && has(attributes.nope) == false", True),
        ("size(attributes) == 2 && 'score' in attributes", True),
        ("[1, 2].exists(i, i < score)", True),
        ("[1, 2].all(score, score < 3)", True),
        ("score > 5 ? reason == 'late' : false", True),
        ("type(score) == int && double(score) == 6.0", True),
        ("EventType['InputEvent'] == '_input_event'", True),
        ("r'\\' == '\\\\' && score == 6 // and a comment: score", True),
        ("nope > 1 || score == 6", True),
        ("size(id) > 0", True),
        (".score == 6", True),
    ],
)
def test_names_in_an_expression(text: str, expected: bool, event: Event) -> None:
    assert holds(text, event) is expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.age == 30 && input.name == 'ann'", User("ann", 30)),
        ("input == {'name': 'ann', 'age': 30}", User("ann", 30)),
        ("has(input.age) && !has(input.size)", User("ann", 30)),
        ("input.total > 9.5 && size(input.items) == 1", Order(total=10, items=["a"])),
        ("input.known == 1 && input.more == 2", Loose.model_validate({"known": 1, "more": 2})),
        ("input.user.age == 3 && input.list[0].age == 4", {"user": User("a", 3), "list": [User("b", 4)]}),
        ("input.x == 1 && input == {'x': 1, 'y': 2}", Point(1, 2)),
        ("input.size == 3 && !has(input._hidden)", Bare()),
        ("input == 'high'", Level.HIGH),
        ("'a' in input", {"a"}),
        ("input[1] == 2", (1, 2)),
        ("input > timestamp('2024-01-01T00:00:00Z')", datetime(2025, 1, 1, tzinfo=UTC)),
        ("input >= '2024-12-31'", date(2025, 1, 1)),
        ("input > duration('1s')", timedelta(seconds=2)),
        ("input == 1.5", Decimal("1.5")),
        ("input == '00000000-0000-0000-0000-000000000001'", UUID(int=1)),
        ("input.name == 'in an event'", Event(type="Named", attributes={"name": "in an event"})),
        ("input == null", None),
        # Attributes that are not named need not be readable.
        ("input.a == 1", {"a": 1, "b": object()}),
    ],
)
def test_values_are_seen_as_plain_data(text: str, value: Any) -> None:
    assert holds(text, InputEvent(value))
    assert holds(text.replace("input", "attributes.input"), InputEvent(value))


def test_the_input_has_a_type_by_name() -> None:
    assert holds("type == EventType.InputEvent && input > 1", InputEvent(2))
    assert not holds("type == EventType.InputEvent && input > 1", OutputEvent(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope > 5", "the event has no attribute 'nope'"),
        ("attributes.nope > 5", "the event has no attribute 'nope'"),
        ("reason.deep > 5", "the event has no attribute 'reason.deep'"),
        ("attributes['nope'] == 1", "there is no 'nope'"),
        ("reason > 5", "the types do not match; reason is 'late'"),
        ("score", "returned 6, which is neither true nor false"),
        ("score / 0 == 1", "division by zero"),
        ("reason.matches('(') ", "not a valid regex"),
    ],
)
def test_expressions_that_cannot_be_evaluated(text: str, message: str) -> None:
    with pytest.raises(ConditionFailed) as caught:
        holds(text, SCORED)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_value_that_no_expression_can_read() -> None:
    with pytest.raises(ConditionFailed, match=r"cannot read a builtins\.object"):
        holds("input == 1", InputEvent(object()))


def test_a_syntax_error_is_marked() -> None:
    with pytest.raises(InvalidAgent) as caught:
        CelExpression("score > 5 &&", "agent 'A', action 'b'")
    text = str(caught.value)
    assert "agent 'A', action 'b': 'score > 5 &&' is not a valid expression" in text
    assert "    score > 5 &&\n" + " " * 16 + "^" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type == EventType.InptEvent", "did you mean EventType.InputEvent?"),
        ("type == EventType.Scored", "type == 'Scored'"),
        ("reason.lowerAscii() == 'a'", "calls lowerAscii(), which CEL does not have"),
        ("scoer(5)", "calls scoer()"),
        ("(" * 100, "nested deeper"),
        ("1 + " * 2_000 + "1 == 1", "4003 parts"),
        ("", "is not a valid expression"),
    ],
)
def test_expressions_that_are_rejected_when_parsed(text: str, message: str) -> None:
    with pytest.raises(InvalidAgent) as caught:
        CelExpression(text, "here")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["size(input) == 1", "input.getFullYear() == 1", "int(input) == 1"])
def test_functions_of_cel_are_known(text: str) -> None:
    CelExpression(text, "here")


@pytest.mark.parametrize("again", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_it_is_pickled_as_text(again: Any) -> None:
    made = CelExpression("type == 'Scored' && score > 5", "here")
    moved = again(made)
    assert moved == made
    assert hash(moved) == hash(made)
    assert repr(moved) == repr(made)
    assert moved.matches(SCORED)
    assert moved.types() == {"Scored"}


@pytest.mark.parametrize(
    ("text", "names", "types"),
    [
        ("score > 5", {"score"}, None),
        ("attributes.score > 5 && attributes['other'] == input.deep", {"score", "other", "input"}, None),
        ("type == 'A' && x.all(i, i.y > z)", {"x", "z"}, {"A"}),
        ("has(attributes.a) && size(b) == 1 && c.size() == 2", {"a", "b", "c"}, None),
        ("type in ['A', EventType.InputEvent] && id != ''", set(), {"A", "_input_event"}),
        ("type == 'A' || type == 'B'", set(), None),
        ("(type == 'A') && a == 'type == b'", {"a"}, None),
        ("type == 'A' && type == 'B'", set(), set()),
        ("type == 'A' ? a : b", {"a", "b"}, None),
        ("type == name", {"name"}, None),
        ("type(a) == string", {"a"}, None),
        ("!(type == 'A')", set(), None),
        ("type == 'A' == true", set(), None),
    ],
)
def test_analysis_of_the_source(text: str, names: set[str], types: set[str] | None) -> None:
    made = CelExpression(text, "here")
    assert made.names() == names
    assert made.types() == types


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel", None)
    with pytest.raises(PackageMissing, match=r"pip install 'emberflow\[cel\]'"):
        CelExpression("score > 5", "here")
