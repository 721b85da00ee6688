"""`OutputSchema`: the type that a model's answer must have, as JSON Schema for the model and as a reader of its reply.

Travels in events and plans as plain data: by name, if it is a class that can be imported.
"""

from __future__ import annotations

import base64
import json
import re
import typing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self, cast

from emberflow.agents.models.json_schema_check import check, check_types
from emberflow.agents.models.row_schema import row_json_type
from emberflow.agents.tools.tool_schema import Mismatch, json_type
from emberflow.errors import InvalidAgent, InvalidArgument, OutputMismatch, describe_cause, shorten
from emberflow.events.codecs import decode, encode
from emberflow.events.model_shape import ModelShape
from emberflow.events.stored_types import stored_type
from emberflow.events.types.type_information import BasicType, BasicTypeInfo, RowTypeInfo
from emberflow.plan import json_functions

STRUCTURED_OUTPUT = "structured_output"
"""Where a ChatMessage's `extra_args` contain the typed value of an answer."""

_ALONE = "value"
"""The property that holds an output that is not an object: services accept only objects."""


class StructuredOutputStrategy(StrEnum):
    """How the output schema is passed to the model."""

    AUTO = "auto"
    """By the service itself if it can for this model, otherwise in the prompt."""
    NATIVE = "native"
    """By the service itself, also for a model of which that is not known."""
    PROMPT = "prompt"
    """In the prompt."""

    @classmethod
    def _missing_(cls, value: object) -> StructuredOutputStrategy | None:
        if value is None:
            return cls.AUTO
        named = str(value).lower()
        return next((item for item in cls if item.value == named), None)


@dataclass(frozen=True, slots=True)
class _Form:
    name: str
    schema: dict[str, Any]
    read: Callable[[Any], Any]
    """Raises Mismatch."""
    alone: bool = False


def _write(schema: OutputSchema) -> Any:
    return schema.model_dump()


def _read(version: int, stored: Any) -> OutputSchema:
    return OutputSchema.model_validate(stored)


@stored_type(write=_write, read=_read)
class OutputSchema(ModelShape):
    """The type of an answer: a Pydantic model, a dataclass, a NamedTuple, a TypedDict, a type such as `int` or `list[str]`,
    a row type (`Types.ROW_NAMED`), or a JSON Schema as a dictionary.

    ```python
    from emberflow.agents import OutputSchema

    schema = OutputSchema(dict[str, int])

    assert schema.parse('{"apples": 2}') == {"apples": 2}
    ```

    Raises InvalidAgent for a type that cannot be represented in JSON.
    """

    __slots__ = ("_form", "output_schema")

    output_schema: Any

    def __init__(self, output_schema: Any) -> None:
        found: Any = output_schema.output_schema if isinstance(output_schema, OutputSchema) else output_schema
        self.output_schema = found
        try:
            self._form = _form_of(found)
        except TypeError:
            # Not hashable, as JSON Schema.
            self._form = _made_form(found)

    @property
    def name(self) -> str:
        """A name of letters, digits, `_` and `-`, for services that ask for one."""
        return re.sub(r"[^A-Za-z0-9_-]+", "_", self._form.name).strip("_")[:64] or "output"

    @property
    def json_schema(self) -> dict[str, Any]:
        """Always of an object; an output of another type is its property `value`."""
        return self._form.schema

    @property
    def instructions(self) -> str:
        """The output schema as instructions, for a model without native structured output."""
        return (
            "Answer with JSON only, without any text before or after it. It must fit this JSON Schema:\n"
            + json.dumps(self.json_schema, ensure_ascii=False)
        )

    def parse(self, text: str) -> Any:
        """The typed value in a model's reply, also inside a code fence. Raises OutputMismatch."""
        form = self._form
        try:
            found = _json_in(text)
        except ValueError:
            return self._in_words(text, f"the reply is not JSON: {shorten(text)}")
        if form.alone and isinstance(found, dict) and set(cast("dict[str, Any]", found)) == {_ALONE}:
            found = cast("dict[str, Any]", found)[_ALONE]
        try:
            return form.read(found)
        except Mismatch as problem:
            shown = str(problem)
        except RecursionError:
            shown = "it is nested too deeply"
        if isinstance(found, dict) and text.lstrip().startswith(("{", "```")):
            # It was meant as JSON, with a property of the wrong name or type.
            raise self._mismatch(shown)
        return self._in_words(text, shown)

    def _in_words(self, text: str, problem: str) -> Any:
        """The reply itself as the value, for a type such as `str` or a date that was not written as JSON."""
        if self._form.alone:
            with suppress(Mismatch):
                return self._form.read(text.strip())
        raise self._mismatch(problem)

    def _mismatch(self, problem: str) -> OutputMismatch:
        return OutputMismatch(
            f"a model's reply does not fit {self._form.name}",
            cause=problem,
            way_out="ask for a simpler type, describe its fields, or use a model with native structured output",
        )

    def _shape_fields(self) -> dict[str, Any]:
        return {"output_schema": _as_data(self.output_schema)}

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        if set(fields) != {"output_schema"}:
            raise InvalidArgument(
                f"an output schema must have one field, 'output_schema', got {shorten(fields)}"
            )
        return cls(_from_data(fields["output_schema"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputSchema) and self.output_schema == other.output_schema

    def __hash__(self) -> int:
        return hash(self._form.name)

    def __repr__(self) -> str:
        return f"OutputSchema({self._form.name})"


@lru_cache(maxsize=256)
def _form_of(output_schema: Any) -> _Form:
    return _made_form(output_schema)


def _made_form(output_schema: Any) -> _Form:
    if isinstance(output_schema, dict):
        return _of_json_schema(cast("dict[str, Any]", output_schema))
    name = getattr(output_schema, "__name__", "") if typing.get_origin(output_schema) is None else ""
    owner = f"the output schema {name or shorten(output_schema)}"
    if isinstance(output_schema, RowTypeInfo):
        name, made = "Row", row_json_type(output_schema, owner)
    else:
        made = json_type(output_schema, owner)
    schema = {**made.schema, "$defs": made.defs} if made.defs else made.schema
    name = name or str(output_schema).replace("typing.", "")
    alone = schema.get("type") != "object" and "$ref" not in schema
    if alone:
        inner = {key: value for key, value in schema.items() if key != "$defs"}
        schema = {
            "type": "object",
            "properties": {_ALONE: inner},
            "required": [_ALONE],
            **({"$defs": made.defs} if made.defs else {}),
        }
    return _Form(name, schema, lambda value: made.read(value, "reply"), alone)


def _of_json_schema(schema: dict[str, Any]) -> _Form:
    if not schema or not all(isinstance(name, str) for name in schema):
        raise InvalidAgent(
            f"{shorten(schema)} is not a JSON Schema", way_out='{"type": "object", "properties": {…}}'
        )
    check_types(schema)

    def read(value: Any) -> Any:
        check(value, schema, "reply")
        return value

    name = schema.get("title")
    alone = schema.get("type", "object") != "object"
    shown = {"type": "object", "properties": {_ALONE: schema}, "required": [_ALONE]} if alone else schema
    return _Form(name if isinstance(name, str) else "output", shown, read, alone)


# the reply

_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)


def _json_in(text: str) -> Any:
    """The JSON of a reply: alone, in a code fence, or after some words. Raises ValueError."""
    try:
        return _first_json(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _first_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    for found in _FENCE.findall(text):
        try:
            return json.loads(found)
        except ValueError:
            continue
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise ValueError(text)
    return json.JSONDecoder().raw_decode(text, start)[0]


# as plain data


def _as_data(output_schema: Any) -> dict[str, Any]:
    if isinstance(output_schema, dict):
        return {"json_schema": output_schema}
    if isinstance(output_schema, RowTypeInfo):
        kinds = output_schema.get_field_types()
        if all(isinstance(kind, BasicTypeInfo) for kind in kinds):
            types = [cast("BasicTypeInfo[Any]", kind).basic_type.name for kind in kinds]
            return {"names": output_schema.get_field_names(), "types": types}
    elif isinstance(output_schema, type):
        named = json_functions.to_json(output_schema)
        if "module" in named:
            return {"module": named["module"], "class": named["qualname"]}
    data = base64.b64encode(encode(output_schema)).decode()
    return {"name": str(getattr(output_schema, "__name__", output_schema)), "pickled": data}


def _from_data(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    data = cast("dict[str, Any]", given)
    try:
        if "names" in data and "types" in data:
            kinds: list[BasicTypeInfo[Any]] = [BasicTypeInfo(_basic_type(name)) for name in data["types"]]
            return RowTypeInfo(tuple(kinds), tuple(data["names"]))
        if "module" in data and "class" in data:
            return json_functions.from_json({"module": data["module"], "qualname": data["class"]})
        if "pickled" in data:
            return decode(base64.b64decode(data["pickled"]))
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidArgument(
            f"the output schema {shorten(data)} cannot be read", cause=describe_cause(error)
        ) from error
    return data["json_schema"] if set(data) == {"json_schema"} else data


def _basic_type(name: str) -> BasicType:
    return BasicType[name] if name in BasicType.__members__ else BasicType(name)
