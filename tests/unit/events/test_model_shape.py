"""`ModelShape`: pydantic's methods on classes that are no pydantic models, and plain data made of any value."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from emberflow.errors import InvalidArgument, NotSerializable
from emberflow.events.model_shape import ModelShape, plain, rows_from_plain
from emberflow.streams import Row


class Color(Enum):
    RED = "red"


class Item(BaseModel):
    name: str
    when: dt.date = dt.date(2026, 1, 2)


@dataclass(frozen=True, slots=True)
class Place(ModelShape):
    city: str
    tags: list[str] = field(default_factory=list[str])
    item: Any = None
    zip_code: str = ""
    _shape_aliases: ClassVar[Mapping[str, str]] = {"zip_code": "zipCode"}


class Trip(BaseModel):
    start: Place
    stops: list[Place] = []


def test_fields_are_dumped_as_plain_data() -> None:
    place = Place("Bonn", ["a"], Item(name="x"))
    assert place.model_dump() == {
        "city": "Bonn", "tags": ["a"], "item": {"name": "x", "when": dt.date(2026, 1, 2)}, "zip_code": "",
    }  # fmt: skip
    assert place.model_dump(mode="json")["item"] == {"name": "x", "when": "2026-01-02"}
    assert place.model_dump(include={"city"}) == {"city": "Bonn"}
    assert Place("Bonn").model_dump(exclude_none=True, exclude={"tags"}) == {"city": "Bonn", "zip_code": ""}
    assert json.loads(place.model_dump_json(by_alias=True, include=["zip_code"])) == {"zipCode": ""}
    assert Place("Bönn").model_dump_json(include=["city"]) == '{"city":"Bönn"}'
    assert Place("B").model_dump_json(include=["city"], indent=1) == '{\n "city": "B"\n}'


def test_objects_are_read_from_dictionaries_and_json() -> None:
    place = Place("Bonn", zip_code="53111")
    assert Place.model_validate(place) is place
    assert Place.model_validate({"city": "Bonn", "zipCode": "53111"}) == place
    assert Place.model_validate({"city": "Bonn", "zip_code": "53111"}) == place
    assert Place.model_validate_json(place.model_dump_json(by_alias=True)) == place


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"town": "Bonn"}, "Place has no field 'town'"),
        ({"city": "Bonn", "tag": []}, "did you mean 'tags'"),
        ({"tags": []}, "Place needs a field 'city'"),
        (["Bonn"], "read from a dictionary"),
    ],
)
def test_invalid_fields_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        Place.model_validate(given)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="this is not JSON"):
        Place.model_validate_json("{")


def test_a_copy_replaces_fields_and_shares_contents_unless_it_is_deep() -> None:
    place = Place("Bonn", ["a"])
    copy = place.model_copy(update={"city": "Köln"})
    assert (copy.city, place.city) == ("Köln", "Bonn")
    assert copy.tags is place.tags
    assert place.model_copy(deep=True).tags is not place.tags
    with pytest.raises(InvalidArgument, match="did you mean 'city'"):
        place.model_copy(update={"cit": 1})


def test_it_is_a_field_of_a_pydantic_model() -> None:
    trip = Trip.model_validate({"start": {"city": "Bonn"}, "stops": [{"city": "Köln"}]})
    assert trip == Trip(start=Place("Bonn"), stops=[Place("Köln")])
    assert Trip.model_validate_json(trip.model_dump_json()) == trip
    assert trip.model_dump()["start"]["city"] == "Bonn"
    assert Trip.model_json_schema()["properties"]["start"]["type"] == "object"
    with pytest.raises(ValidationError, match="has no field 'town'"):
        Trip.model_validate({"start": {"town": "Bonn"}})


def test_what_has_no_form_in_json_becomes_text_lists_and_dictionaries() -> None:
    value = {
        "moment": dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "id": UUID(int=5), "set": {1}, "pair": (1, Color.RED),
        "bytes": b"ab", "amount": Decimal("1.50"), "path": PurePath("a/b"), "nan": float("nan"), Color.RED: 1, 7: None,
        "mapping": Row(a=1, b=[Row(2)]), "took": dt.timedelta(seconds=90),
    }  # fmt: skip
    found = plain(value, mode="json")
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "moment": "2026-01-02T03:00:00Z", "id": str(UUID(int=5)), "set": [1], "pair": [1, "red"], "bytes": "ab",
        "amount": "1.50", "path": "a/b", "nan": None, "red": 1, "7": None, "took": "PT90S",
        "mapping": {"type": "Row", "values": [1, [{"type": "Row", "values": [2]}]], "fields": ["a", "b"]},
    }  # fmt: skip
    assert rows_from_plain(found["mapping"]) == Row(a=1, b=[Row(2)])


def test_in_python_mode_only_models_and_dataclasses_change() -> None:
    moment = dt.datetime(2026, 1, 2)
    assert plain((Item(name="x"), moment, {1}, Row(1))) == (
        {"name": "x", "when": dt.date(2026, 1, 2)}, moment, {1}, Row(1),
    )  # fmt: skip


def test_values_without_a_form_in_json_are_refused_or_converted() -> None:
    with pytest.raises(NotSerializable, match="cannot be represented in JSON"):
        plain([object()], mode="json")
    assert plain([object()], mode="json", fallback=lambda _: "other") == ["other"]
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(NotSerializable, match="contains itself"):
        plain(circle)
