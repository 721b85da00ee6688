"""Tools: what a function's signature tells a model, and how the model's arguments are converted."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, Required, TypedDict, Union

import pytest
import typing_extensions
from pydantic import Field

from emberflow.agents.decorators import tool
from emberflow.agents.tools.function_tool import FunctionTool, Tool, ToolType, as_tool
from emberflow.errors import InvalidAgent, InvalidArgument
from emberflow.events.codecs import decode, encode
from emberflow.plan.agents.resources import ResourceType


class Unit(Enum):
    KM = "km"
    MILE = "mi"


@dataclass
class Place:
    city: str
    zip: int = 0


class Options(TypedDict, total=False):
    loud: bool


# Pydantic wants those of typing_extensions. The annotations of a class would be strings here, of which Required is not seen.
class Partly(typing_extensions.TypedDict, total=False):
    """Pydantic wants those of typing_extensions."""

    a: int
    b: Required[str]


Number = NewType("Number", int)
Numbers = typing_extensions.TypeAliasType("Numbers", list[int])


class Model:
    """Stands in for a Pydantic model: the same two methods."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/N"}},
            "$defs": {"N": {"type": "integer"}},
        }

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value, dict):
            raise ValueError("Input should be a dictionary")
        return cls(value["n"])


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Slowly.

    Args:
        a: the first number,
            in full
        b (int): the second number

    Returns:
        The sum.
    """
    return a + b


def numpy_style(a: int, b: int) -> None:
    """Compares.

    Parameters
    ----------
    a : int
        The left one.
    b : int
        The right one.

    Returns:
    -------
    None
    """


def sphinx_style(a: int, b: int) -> None:
    """Compares.

    :param a: the left one
    :param int b: the right one
    :returns: nothing
    """


async def measure(place: Place, unit: Unit = Unit.KM) -> str:
    """Measures."""
    await asyncio.sleep(0)
    return f"{place.city} {place.zip} {unit.name}"


def call(function: Callable[..., Any], **arguments: Any) -> Any:
    return asyncio.run(FunctionTool(function).call(arguments))


def test_a_function_describes_itself() -> None:
    made = Tool.from_callable(add)
    assert made.name == "add"
    assert made.metadata.description == "Adds two numbers.\n\nSlowly."
    assert made.metadata.get_parameters_dict() == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first number, in full"},
            "b": {"type": "integer", "description": "the second number", "default": 2},
        },
        "required": ["a"],
    }
    assert (made.resource_type(), made.tool_type()) == (ResourceType.TOOL, ToolType.FUNCTION)


@pytest.mark.parametrize("function", [numpy_style, sphinx_style])
def test_other_docstrings(function: Callable[..., Any]) -> None:
    made = FunctionTool(function).metadata
    assert made.description == "Compares."
    said = [item["description"].lower().rstrip(".") for item in made.args_schema["properties"].values()]
    assert said == ["the left one", "the right one"]


def test_a_function_without_a_docstring() -> None:
    nothing_said: Callable[[Any], Any] = lambda x: x  # noqa: E731
    made = FunctionTool(nothing_said, name="same")
    assert made.metadata.description == ""
    assert made.metadata.args_schema["properties"] == {"x": {}}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Unit, {"type": "string", "enum": ["km", "mi"]}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict, {"type": "object"}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (date, {"type": "string", "format": "date"}),
        (Annotated[str, "the city"], {"type": "string", "description": "the city"}),
        (
            Annotated[int, Field(ge=1, description="how many")],
            {"type": "integer", "minimum": 1, "description": "how many"},
        ),
        (Number, {"type": "integer"}),
        (
            Numbers,
            {"type": "array", "items": {"type": "integer"}},
        ),
        (
            Partly,
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["b"],
            },
        ),
        (
            Place,
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                "required": ["city"],
            },
        ),
        (Options, {"type": "object", "properties": {"loud": {"type": "boolean"}}, "required": []}),
    ],
    ids=str,
)
def test_annotations_as_schema(hint: Any, schema: dict[str, Any]) -> None:
    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    assert FunctionTool(function).metadata.args_schema["properties"]["x"] == schema


@pytest.mark.parametrize(
    ("hint", "sent", "read"),
    [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (Unit, "mi", Unit.MILE),
        (Unit | None, None, None),
        (list[Unit], ["km"], [Unit.KM]),
        (set[int], [1, 1], {1}),
        (Annotated[int, Field(ge=1)], 2, 2),
        (Partly, {"b": "x"}, {"b": "x"}),
        (Number, 3, 3),
        (time, "12:00:00", time(12)),
        (Path, "a/b", Path("a/b")),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, Place], {"x": {"city": "Ulm"}}, {"x": Place("Ulm")}),
        (Options, {"loud": True}, {"loud": True}),
        (int | str, "3", "3"),
        (datetime, "2030-01-31T12:00:00", datetime(2030, 1, 31, 12)),
        (Any, {"a": [1]}, {"a": [1]}),
    ],
    ids=str,
)
def test_arguments_are_converted_to_the_annotated_types(hint: Any, sent: Any, read: Any) -> None:
    def function(x: Any) -> Any:
        return x

    function.__annotations__["x"] = hint
    assert call(function, x=sent) == read


def test_plain_and_coroutine_functions() -> None:
    assert call(add, a=1) == 3
    assert call(measure, place={"city": "Ulm"}, unit="mi") == "Ulm 0 MILE"


def test_a_part_of_a_function() -> None:
    made = FunctionTool(functools.partial(add, b=5))
    assert made.name == "add"
    assert made.metadata.args_schema["properties"]["b"]["default"] == 5
    assert asyncio.run(made.call({"a": 1})) == 6


def test_types_that_describe_themselves() -> None:
    def count(model: Model) -> int:
        return model.n

    made = FunctionTool(count)
    assert made.metadata.args_schema["$defs"] == {"N": {"type": "integer"}}
    assert made.metadata.args_schema["properties"]["model"]["properties"] == {"n": {"$ref": "#/$defs/N"}}
    assert asyncio.run(made.call({"model": {"n": 4}})) == 4
    with pytest.raises(InvalidArgument, match=r"arguments\.model: ValueError: Input should be"):
        asyncio.run(made.call({"model": 4}))


def test_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic", reason="A17: an argument of a tool may be a Pydantic model")
    order = pydantic.create_model("Order", count=(int, ...))

    def place(order: Any) -> int:
        return order.count

    place.__annotations__["order"] = order
    assert call(place, order={"count": 2}) == 2
    with pytest.raises(InvalidArgument, match=r"arguments\.order: count: Input should be a valid integer"):
        call(place, order={"count": "many"})


def counted(count: Annotated[int, Field(ge=1)]) -> int:
    return count


def test_limits_of_pydantic_are_checked() -> None:
    tool = pickle.loads(pickle.dumps(FunctionTool(counted)))
    assert asyncio.run(tool.call(count=1)) == 1
    with pytest.raises(
        InvalidArgument, match=r"arguments\.count: Input should be greater than or equal to 1"
    ):
        asyncio.run(tool.call(count=0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "arguments needs 'a'"),
        ({"a": 1, "c": 2}, "arguments has the unexpected property 'c'"),
        ({"a": "1"}, r"arguments\.a must be a whole number, got '1'"),
        ({"a": True}, "whole number"),
        ({"a": float("inf")}, "whole number"),
        ({"a": 1, "b": None, "x": 0}, r"has the unexpected property 'x'; arguments\.b must be"),
    ],
)
def test_the_model_gets_a_message_about_what_is_wrong(arguments: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as raised:
        asyncio.run(FunctionTool(add).call(arguments))
    assert "tool 'add'" in str(raised.value)
    assert "it takes: a, b" in str(raised.value)


def test_arguments_may_be_given_by_position() -> None:
    tool = FunctionTool(add)
    assert asyncio.run(tool.call(1)) == asyncio.run(tool.call(a=1))
    assert asyncio.run(tool.call(1, 2)) == asyncio.run(tool.call(1, b=2)) == 3
    for positional, named, said in (
        ((1, 2, 3), {}, "received 3 arguments by position"),
        ((1,), {"a": 2}, "received its argument 'a' twice"),
        (("1",), {}, "arguments.a must be a whole number"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            asyncio.run(tool.call(*positional, **named))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"place": {"zip": "x"}}, r"arguments\.place needs 'city'; arguments\.place\.zip must be"),
        ({"place": []}, r"arguments\.place must be an object"),
        ({"place": {"city": "Ulm"}, "unit": "m"}, r"arguments\.unit must be one of 'km', 'mi'"),
    ],
)
def test_places_inside_arguments_are_named(arguments: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        asyncio.run(FunctionTool(measure).call(arguments))


def test_open_arguments() -> None:
    def search(query: str, **filters: Any) -> Any:
        return query, filters

    assert call(search, query="tea", color="green") == ("tea", {"color": "green"})
    assert FunctionTool(search).metadata.args_schema["required"] == ["query"]


def test_an_error_of_the_function_is_raised_unchanged() -> None:
    def divide(a: int) -> float:
        return a / 0

    with pytest.raises(ZeroDivisionError):
        call(divide, a=1)


class Tree:
    pass


@dataclass
class Node:
    children: list[Node]


def with_self(self: Any, a: int) -> None: ...
def positional(a: int, /) -> None: ...
def several(*numbers: int) -> None: ...
def takes_tree(tree: Tree) -> None: ...
def takes_node(node: Node) -> None: ...
def takes_numbers(numbers: dict[int, str]) -> None: ...
def takes_unknown(x: Any) -> None: ...


takes_unknown.__annotations__["x"] = "Unknown"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (with_self, "@staticmethod"),
        (positional, "'a' cannot be passed by name"),
        (several, "'numbers' cannot be passed by name"),
        (takes_tree, "parameter 'tree' of the tool 'takes_tree': the type Tree cannot be represented"),
        (takes_node, "contains itself"),
        (takes_numbers, "property names of a JSON object are strings"),
        (takes_unknown, "annotations cannot be read"),
    ],
)
def test_functions_that_cannot_be_tools(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(InvalidAgent) as raised:
        FunctionTool(function)
    assert said in str(raised.value)


def test_a_tool_can_be_pickled() -> None:
    made = FunctionTool(measure)
    context: Any = object()
    made.resource_context = context
    for back in (pickle.loads(pickle.dumps(made)), decode(encode(made))):
        assert back == made
        assert asyncio.run(back.call({"place": {"city": "Ulm"}})) == "Ulm 0 KM"


def test_a_tool_defined_inside_a_function_is_pickled_with_its_types() -> None:
    @dataclasses.dataclass
    class Local:
        n: Any

    def double(x: Any) -> Any:
        return x.n * 2

    double.__annotations__["x"] = Local
    back = decode(encode(FunctionTool(double)))
    assert asyncio.run(back.call({"x": {"n": 2}})) == 4


def test_a_resource_as_a_tool() -> None:
    marked = tool(add)
    assert as_tool("plus", marked).name == "plus"
    assert as_tool("", marked).name == "add"
    made = FunctionTool(add)
    assert as_tool("add", made) is made
    assert as_tool("plus", made).name == "plus"
    assert made.name == "add"
    assert asyncio.run(as_tool("plus", made).call({"a": 1})) == 3
    with pytest.raises(InvalidAgent, match="5 cannot be used as the tool 'x'"):
        as_tool("x", 5)
