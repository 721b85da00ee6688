"""Values in events of Flink Agents' programs are what remains of them after a journey as JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from emberflow.agents import ChatMessage, MessageRole
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.events.json_values import json_attributes, json_value
from emberflow.operators.agents.sent_events import sent_copy
from emberflow.streams import Row


class Color(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Visit:
    page: str
    at: dt.date


class Order(BaseModel):
    number: int
    placed: dt.datetime


class Odd:
    pass


NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Order(number=1, placed=NOON), {"number": 1, "placed": "2026-01-01T12:00:00Z"}),
        (Visit("home", NOON.date()), {"page": "home", "at": "2026-01-01"}),
        (Point(1, 2), [1, 2]),
        ((1, (2, "a")), [1, [2, "a"]]),
        ({3}, [3]),
        (frozenset({"a"}), ["a"]),
        (Color.RED, "red"),
        (NOON, "2026-01-01T12:00:00Z"),
        (NOON.replace(tzinfo=None, microsecond=5), "2026-01-01T12:00:00.000005"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (b"ab", "ab"),
        (math.nan, None),
        (math.inf, None),
        (2**70, 2**70),
        ({1: "a", None: "b", (1, 2): "c", False: "d"}, {"1": "a", "None": "b", "1,2": "c", "false": "d"}),
        ({"visits": [Visit("home", NOON.date())]}, {"visits": [{"page": "home", "at": "2026-01-01"}]}),
        (Row(a=1, b=Point(1, 2)), Row(a=1, b=[1, 2])),
        (Row(1, 2), Row(1, 2)),
        ({"type": "Row", "values": [1], "fields": ["a"]}, Row(a=1)),
    ],
)  # fmt: skip
def test_what_arrives(value: Any, arrives: Any) -> None:
    found = json_value(value)
    assert found == arrives
    assert type(found) is type(arrives)


def test_messages_remain_messages_with_plain_contents() -> None:
    message = ChatMessage(role="user", content="hi", extra_args={"order": Order(number=1, placed=NOON)})
    found = json_value({"messages": [message]})["messages"][0]
    assert found.role is MessageRole.USER
    assert found.extra_args == {"order": {"number": 1, "placed": "2026-01-01T12:00:00Z"}}
    assert isinstance(message.extra_args["order"], Order)


def test_what_json_cannot_represent_stays() -> None:
    assert json_value(b"\xff") == b"\xff"
    assert isinstance(json_value([Odd()])[0], Odd)
    endless: list[Any] = []
    endless.append(endless)
    assert json_value(endless)[0] is not endless


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=3).filter(lambda value: value.get("type") != "Row"))
def test_plain_data_is_copied(value: dict[str, Any]) -> None:
    found = json_attributes(value)
    assert found == value
    assert all(found[name] is not item for name, item in value.items() if isinstance(item, (list, dict)))


def test_an_event_is_sent_as_json_if_that_is_wanted() -> None:
    attributes: dict[Any, Any] = {"visit": Visit("home", NOON.date()), 1: (1, 2)}
    event = Event("seen", attributes, note=NOON)
    sent = sent_copy(event, 10_000, as_json=True)
    assert sent.attributes == {"visit": {"page": "home", "at": "2026-01-01"}, "1": [1, 2]}
    assert isinstance(event.attributes["visit"], Visit)
    assert isinstance(sent_copy(event, 10_000).attributes["visit"], Visit)
    assert sent_copy(OutputEvent(Point(1, 2)), 10_000, as_json=True).output == [1, 2]
