"""Events of agents: classes with fields, plain events, and conversions between them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import field
from typing import Any, ClassVar
from uuid import UUID

import pytest
from pydantic import BaseModel

from emberflow.agents import Event, EventType, InputEvent, OutputEvent
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.events.agent_events import fields_of
from emberflow.streams import Row


class Scored(Event):
    score: int
    reason: str = ""
    tags: list[str] = field(default_factory=list[str])


class Rescored(Scored):
    before: int = 0


class Empty(Event):
    pass


class Named(Event):
    EVENT_TYPE: ClassVar[str] = "named.event"
    name: str


class Own(Event):
    def __init__(self, value: Any) -> None:
        self.attributes = {"value": value}


def test_fields_are_attributes() -> None:
    event = Scored(score=3)
    assert event.attributes == {"score": 3, "reason": "", "tags": []}
    assert event.get_attr("score") == 3
    assert event.get_attr("nope") is None
    event.set_attr("score", 4)
    assert event.score == 4
    assert event.attributes["score"] == 4
    assert Scored(score=1).tags is not Scored(score=1).tags


def test_types() -> None:
    assert [kind.EVENT_TYPE for kind in (Scored, Rescored, Empty, Named, Own)] == [
        "Scored",
        "Rescored",
        "Empty",
        "named.event",
        "Own",
    ]
    assert Scored(score=1).type == Scored(score=1).get_type() == "Scored"
    assert EventType.InputEvent == InputEvent(1).type == "_input_event"
    assert EventType.OutputEvent == OutputEvent(1).type == "_output_event"


def test_what_a_class_declares() -> None:
    assert fields_of(Scored) == ["score", "reason", "tags"]
    assert fields_of(Rescored) == ["score", "reason", "tags", "before"]
    assert fields_of(Empty) == []
    assert fields_of(InputEvent) == ["input"]
    assert fields_of(OutputEvent) == ["output"]
    assert fields_of(Own) is None
    assert fields_of(Event) is None


def test_wrong_fields_are_rejected() -> None:
    with pytest.raises(TypeError):
        Scored()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        Empty(1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError, match="'Scored' event has no attribute 'nope'"):
        _ = Scored(score=1).nope
    with pytest.raises(InvalidArgument, match="an event needs a type"):
        Event(type="")


def test_equal_by_type_and_contents() -> None:
    assert Scored(score=1) == Event(
        type="Scored", attributes={"score": 1, "reason": "", "tags": []}, id="another"
    )
    assert Scored(score=1) != Scored(score=2)
    assert InputEvent(1) != OutputEvent(1)
    assert Scored(score=1) != 1
    assert len({Scored(score=1), Scored(score=1)}) == 2


def test_shown() -> None:
    assert repr(Scored(score=1)) == "Scored(score=1, reason='', tags=[])"
    assert repr(Event(type="a", attributes={"b": 1})) == "Event('a', b=1)"
    assert repr(InputEvent("x")) == "InputEvent(input='x')"


def test_typed_forms_keep_the_identity() -> None:
    plain = Event(type="Scored", attributes={"score": 1, "more": 2}, id="id-1")
    plain.upstream_event_id, plain.upstream_action_name = "id-0", "act"
    typed = Scored.from_event(plain)
    assert isinstance(typed, Scored)
    assert (typed.score, typed.reason) == (1, "")
    assert (typed.id, typed.upstream_event_id, typed.upstream_action_name) == ("id-1", "id-0", "act")
    assert Scored.from_event(typed) is typed
    assert Event.from_event(typed) is typed


def test_typed_forms_of_built_in_and_own_classes() -> None:
    plain = Event(type="_input_event", attributes={"input": 5})
    assert InputEvent.from_event(plain).input == 5
    assert OutputEvent.from_event(Event(type="_output_event", attributes={"output": 6})).output == 6
    assert Own.from_event(Event(type="Own", attributes={"value": 1})) == Own(1)


def test_an_attribute_that_is_missing() -> None:
    with pytest.raises(InvalidArgument, match="has no attribute 'score', which Scored needs") as caught:
        Scored.from_event(Event(type="Scored", attributes={"scoer": 1}))
    assert "'scoer'" in str(caught.value)


def test_from_json() -> None:
    event = Event.from_json('{"type": "a", "attributes": {"b": [1]}, "id": "x"}')
    assert event == Event(type="a", attributes={"b": [1]})
    assert event.id == "x"
    assert Event.from_json('{"type": "a"}').attributes == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type": ""}', "5"])
def test_values_that_are_not_events(text: str) -> None:
    with pytest.raises(InvalidArgument, match="in JSON"):
        Event.from_json(text)


@pytest.mark.parametrize("event", [Scored(score=1), Named(name="n"), InputEvent({"a": 1}), Event(type="t")])
def test_events_can_be_pickled(event: Event) -> None:
    event.id = "id-1"
    for moved in (pickle.loads(pickle.dumps(event)), copy.deepcopy(event)):
        assert moved == event
        assert type(moved) is type(event)
        assert moved.id == "id-1"


def test_a_field_that_every_event_has_is_rejected() -> None:
    with pytest.raises(InvalidAgent, match="declares a field 'type'") as caught:

        class Wrong(Event):
            type: str

    assert "wrong_type" in str(caught.value)


class Point(BaseModel):
    x: int
    tags: list[str] = []


class Moved(Event):
    to: Point
    by: str = ""


def test_an_event_has_the_methods_of_a_pydantic_model() -> None:
    event = Event(type="moved", attributes={"to": Point(x=1)}, id="id-1")
    assert event.model_dump() == {
        "id": "id-1", "type": "moved", "attributes": {"to": {"x": 1, "tags": []}},
    }  # fmt: skip
    event.upstream_event_id, event.upstream_action_name = "id-0", "act"
    data = json.loads(event.model_dump_json())
    assert (data["upstreamEventId"], data["upstreamActionName"]) == ("id-0", "act")
    again = Event.model_validate_json(event.model_dump_json())
    assert again == Event(type="moved", attributes={"to": {"x": 1, "tags": []}})
    assert (again.id, again.upstream_event_id, again.upstream_action_name) == ("id-1", "id-0", "act")
    assert Event.model_validate({"type": "a", "upstream_event_id": "u"}).upstream_event_id == "u"


def test_properties_beside_the_attributes() -> None:
    event: Any = Event(type="a", attributes={}, isPython=True, note={"n": 1})
    assert event.isPython is True
    assert event.model_dump()["note"] == {"n": 1}
    again: Any = Event.model_validate_json(event.model_dump_json())
    assert (again.note, again == event, event == Event(type="a")) == ({"n": 1}, True, False)
    with pytest.raises(InvalidArgument, match="did you mean 'attributes'"):
        Event(type="a", atributes={"b": 1})


def test_events_of_classes_are_read_and_dumped() -> None:
    moved = Moved(to=Point(x=1))
    data = moved.model_dump()
    assert data["attributes"] == {"to": {"x": 1, "tags": []}, "by": ""}
    assert Moved.model_validate(data) == moved
    assert isinstance(Moved.model_validate(data).to, Point)
    assert Moved.model_validate({"to": {"x": 1}}).to == Point(x=1)
    assert Own.model_validate({"type": "Own", "attributes": {"value": 3}}) == Own(3)


def test_a_copy_of_an_event_with_other_contents() -> None:
    event = Event(type="a", attributes={"b": []}, id="x")
    copied = event.model_copy(update={"id": "y", "note": 1})
    assert (copied.id, event.id, copied.attributes is event.attributes) == ("y", "x", True)
    assert event.model_copy(deep=True).attributes["b"] is not event.attributes["b"]


def test_attributes_of_a_class_are_plain_data_and_its_fields_are_typed() -> None:
    moved = Moved(to=Point(x=1))
    assert moved.attributes["to"]["x"] == 1
    assert moved.to.x == 1
    assert Moved.from_event(Event(type="Moved", attributes={"to": {"x": 2}})).to == Point(x=2)


def test_rows_survive_json() -> None:
    event = Event(type="a", attributes={"row": Row(x=1), "rows": [Row(1, 2)]})
    assert Event.from_json(event.model_dump_json()) == event


def test_an_id_that_is_read_outside_of_an_action_is_random_and_stays() -> None:
    first, second = Event(type="a"), Event(type="a")
    assert first.id == first.id != second.id
    assert Event(type="a", id=UUID(int=1)).id == str(UUID(int=1))
    assert Event(type="a").upstream_event_id is None


@pytest.mark.parametrize("attributes", [3, [("a", 1)], "a"])
def test_attributes_are_a_dictionary(attributes: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"attributes of the event 'x' are .*must be a dict"):
        Event(type="x", attributes=attributes)
