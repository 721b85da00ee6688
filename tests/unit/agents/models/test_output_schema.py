"""Output schemas: what the model is told, how its reply is read, and how they travel."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal, NamedTuple, TypedDict

import jsonschema
import pytest
from pydantic import BaseModel, Field

from emberflow.agents import OutputSchema, StructuredOutputStrategy
from emberflow.errors import InvalidAgent, InvalidArgument, OutputMismatch
from emberflow.events.types.row import Row
from emberflow.streams import Types


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Verdict:
    mood: Mood
    score: int = 0


class Judgement(BaseModel):
    verdict: Literal["yes", "no"]
    sure: float = Field(ge=0, le=1)
    parts: list[Verdict] = []


class Point(NamedTuple):
    x: int
    y: int = 0


class Address(TypedDict):
    street: str


ROW = Types.ROW_NAMED(["name", "tags"], [Types.STRING(), Types.LIST(Types.INT())])
PLAIN_ROW = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1}},
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"item": {"enum": ["tea", "coffee"]}},
}

CASES: list[tuple[Any, str, Any]] = [
    (Verdict, '{"mood": "good", "score": 3}', Verdict(Mood.GOOD, 3)),
    (Judgement, '{"verdict": "yes", "sure": 0.5}', Judgement(verdict="yes", sure=0.5)),
    (Point, '{"x": 1}', Point(1)),
    (Address, '{"street": "Main"}', {"street": "Main"}),
    (ROW, '{"name": "ann", "tags": [1]}', Row(name="ann", tags=[1])),
    (PLAIN_ROW, '{"name": "ann", "age": 3}', Row(name="ann", age=3)),
    (JSON, '{"items": ["tea"]}', {"items": ["tea"]}),
    (int, '{"value": 3}', 3),
    (int, "3", 3),
    (str, '{"value": "hello"}', "hello"),
    (str, "hello there", "hello there"),
    (str, "3", "3"),
    (str, "true", "true"),
    (str, "In [1, 2] it is shown.", "In [1, 2] it is shown."),
    (str, 'Use {"a": 1} as the settings.', 'Use {"a": 1} as the settings.'),
    (date, "2030-01-31", date(2030, 1, 31)),
    (Literal["yes", "no"], "yes", "yes"),
    (list[Verdict], '{"value": [{"mood": "bad"}]}', [Verdict(Mood.BAD)]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (int | None, "null", None),
    (Literal["a", "b"], '{"value": "a"}', "a"),
    (Mood, '"good"', Mood.GOOD),
    ({"type": "integer"}, '{"value": 4}', 4),
]


@pytest.mark.parametrize(("schema", "reply", "value"), CASES, ids=lambda item: str(item)[:30])
def test_a_reply_that_fits_becomes_a_typed_value(schema: Any, reply: str, value: Any) -> None:
    made = OutputSchema(output_schema=schema)
    assert made.parse(reply) == value
    assert made.json_schema.get("type", "object") == "object"
    jsonschema.Draft202012Validator.check_schema(made.json_schema)
    assert json.dumps(made.json_schema, ensure_ascii=False) in made.instructions
    assert made.name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    "text",
    ['{"x": 1}', '```json\n{"x": 1}\n```', 'Sure:\n```\n{"x": 1}\n```\nBye.', 'It is {"x": 1}, I think.'],
)
def test_words_and_fences_around_a_reply_are_ignored(text: str) -> None:
    assert OutputSchema(Point).parse(text) == Point(1)


@pytest.mark.parametrize(
    ("schema", "reply", "said"),
    [
        (Verdict, "no idea", "the reply is not JSON: 'no idea'"),
        (
            Verdict,
            '{"mood": "fine", "scoer": 1}',
            "reply has the unexpected property 'scoer'; reply.mood must be one of 'good', 'bad'",
        ),
        (Judgement, '{"verdict": "yes", "sure": 2}', "sure: Input should be less than or equal to 1"),
        (int, '{"value": "x"}', "reply must be a whole number"),
        (int, "three", "the reply is not JSON: 'three'"),
        (str, '{"name": "x"}', "reply must be a string"),
        (ROW, '{"name": 1}', "reply needs 'tags'"),
        (JSON, '{"items": ["milk"]}', r"reply.items\[0\] must be one of \['tea', 'coffee'\]"),
        (
            JSON,
            '{"items": [], "x": 1}',
            "a list of at least 1.*reply has the unexpected property 'x'|property 'x'.*at least 1",
        ),
        (JSON, "[]", "reply must be an object"),
    ],
)
def test_a_reply_that_does_not_fit_tells_the_model_what_to_correct(
    schema: Any, reply: str, said: str
) -> None:
    with pytest.raises(OutputMismatch, match=said) as failed:
        OutputSchema(schema).parse(reply)
    assert failed.value.cause in failed.value.for_model
    assert "corrected JSON" in pickle.loads(pickle.dumps(failed.value)).for_model


@pytest.mark.parametrize("schema", [case[0] for case in CASES], ids=lambda item: str(item)[:30])
def test_schemas_travel_as_plain_data(schema: Any) -> None:
    made = OutputSchema(schema)
    data = json.loads(json.dumps(made.model_dump()))
    assert OutputSchema.model_validate(data) == made
    assert OutputSchema.model_validate_json(made.model_dump_json()) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert OutputSchema(made) == made


def test_classes_travel_by_name() -> None:
    named = {"module": __name__, "class": "Judgement"}
    assert OutputSchema(Judgement).model_dump() == {"output_schema": named}
    row = {"names": ["name", "age"], "types": ["STRING", "INT"]}
    assert OutputSchema(PLAIN_ROW).model_dump() == {"output_schema": row}
    with pytest.raises(InvalidArgument, match="one field, 'output_schema'"):
        OutputSchema.model_validate({"schema": named})


@pytest.mark.parametrize("wrong", [{}, object(), 3, lambda: 3, dict[int, str]])
def test_types_without_a_form_in_json_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidAgent):
        OutputSchema(wrong)


def test_strategies_are_read_in_any_case() -> None:
    assert [StructuredOutputStrategy(name) for name in ("NATIVE", "Prompt", None)] == [
        "native",
        "prompt",
        "auto",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objct"},
        {"type": ["null", "objct"]},
        {"properties": {"a": {"type": "array", "items": {"type": "objct"}}}},
        {"anyOf": [{"type": "objct"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "objct"}}},
    ],
)
def test_a_type_that_json_schema_does_not_have_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidAgent, match=r"the type 'objct'.*did you mean 'object'\?"):
        OutputSchema(schema)
