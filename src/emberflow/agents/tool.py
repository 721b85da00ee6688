"""Tools: functions that a model may request to be called. A function's signature and docstring describe it to the model.

Tools are part of the plan. The agent loop uses `as_tool` to turn a resource into a tool, and awaits `call`.
"""

from __future__ import annotations

import copy
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass, replace
from enum import Enum
from typing import Any, cast

from emberflow.agents.tool_docstring import read_docstring
from emberflow.agents.tool_schema import JsonType, Mismatch, json_type, read_fields, resolved_hints
from emberflow.errors import InvalidAgent, InvalidArgument, shorten
from emberflow.plan.agents.resources import ResourceType, SerializableResource


class ToolType(Enum):
    """The origin of a tool."""

    FUNCTION = "function"
    MCP = "mcp"
    MODEL_BUILT_IN = "model_built_in"
    REMOTE_FUNCTION = "remote_function"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """The description of a tool for a model."""

    name: str
    description: str
    args_schema: dict[str, Any]
    """JSON Schema of the arguments: an object with one property per parameter."""

    def get_parameters_dict(self) -> dict[str, Any]:
        """The schema in the form that model services expect."""
        return {
            name: value
            for name, value in self.args_schema.items()
            if name in ("type", "properties", "required", "$defs")
        }


class Tool(SerializableResource, ABC):
    """Base class of tools. Like a model, a tool may be called concurrently."""

    metadata: ToolMetadata

    @staticmethod
    def from_callable(func: Callable[..., Any]) -> FunctionTool:
        """A tool created from a function: its name, docstring and annotations describe it to the model."""
        return FunctionTool(func)

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return self.metadata.name

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.TOOL`."""
        return ResourceType.TOOL

    @classmethod
    @abstractmethod
    def tool_type(cls) -> ToolType:
        """The kind of tool."""

    @abstractmethod
    async def call(self, arguments: dict[str, Any]) -> Any:
        """The result. Raises InvalidArgument, with a message for the model, if the arguments are invalid."""

    def __getstate__(self) -> dict[str, Any]:
        # The context belongs to the process that opened the tool.
        return {name: value for name, value in self.__dict__.items() if name != "resource_context"}


class FunctionTool(Tool):
    """A function as a tool: `FunctionTool(add)`, or `@tool` in an agent.

    The docstring is the description, the annotations are the schema. What the model sends is validated and converted to
    the annotated types: an Enum, a dataclass, a Pydantic model, a datetime. A coroutine function is awaited; a plain
    function runs in place and blocks everything else: use a coroutine for anything that waits.
    """

    def __init__(
        self, func: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> None:
        self.func = func
        written = func
        while isinstance(written, functools.partial):
            written = written.func
        shown = name or getattr(written, "__name__", type(written).__name__)
        self._parameters = _parameters_of(func, f"tool {shown!r}")
        # Resolved where the tool is created: a function sent by value does not include the types that it only names.
        self._hints = resolved_hints(_annotated(written), f"tool {shown!r}")
        said, about = read_docstring(written)
        self._readers = self._make_readers(shown)
        self.metadata = ToolMetadata(
            name=shown,
            description=said if description is None else description,
            args_schema=_schema(self._parameters, self._readers, about),
        )

    @classmethod
    def tool_type(cls) -> ToolType:
        """Always `ToolType.FUNCTION`."""
        return ToolType.FUNCTION

    async def call(self, arguments: dict[str, Any]) -> Any:
        # A wrapped coroutine function is recognized by its result.
        result = self.func(**self._read(arguments))
        return await result if inspect.isawaitable(result) else result

    def _read(self, arguments: Any) -> dict[str, Any]:
        takes = ", ".join(self._readers) or "no arguments"
        if not isinstance(arguments, dict):
            raise InvalidArgument(
                f"the arguments of the tool {self.name!r} must be an object, got {shorten(arguments)}",
                way_out=f"it takes: {takes}",
            )
        given = cast("dict[str, Any]", arguments)
        rest: dict[str, Any] = {}
        if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in self._parameters):
            rest = {name: value for name, value in given.items() if name not in self._readers}
        known = {name: value for name, value in given.items() if name not in rest}
        try:
            return {**read_fields(self._readers, _required(self._parameters), known, "arguments"), **rest}
        except Mismatch as error:
            raise InvalidArgument(
                f"the tool {self.name!r} was called with arguments that do not fit: {error}",
                way_out=f"it takes: {takes}",
            ) from None

    def _make_readers(self, shown: str) -> dict[str, JsonType]:
        return {
            item.name: json_type(
                self._hints.get(item.name, Any), f"parameter {item.name!r} of the tool {shown!r}"
            )
            for item in self._parameters
            if item.kind is not inspect.Parameter.VAR_KEYWORD
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionTool) and self.func == other.func and self.metadata == other.metadata

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        # They consist of closures; the types that they are built from are pickled.
        return {
            name: value
            for name, value in super().__getstate__().items()
            if name not in ("_readers", "_parameters")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._parameters = _parameters_of(self.func, f"tool {self.name!r}")
        self._readers = self._make_readers(self.name)


def as_tool(name: str, found: Any) -> Tool:
    """A tool with this name. The model calls tools by the name of their resource, whatever the function itself is called."""
    if isinstance(found, Tool):
        if not name or found.name == name:
            return found
        named = copy.copy(found)
        named.metadata = replace(found.metadata, name=name)
        return named
    if callable(found):
        return FunctionTool(found, name=name or None)
    raise InvalidAgent(
        f"the tool {name!r} is {shorten(found)}", way_out="a tool is a function, or an instance of Tool"
    )


def _annotated(func: Callable[..., Any]) -> Any:
    """The object with the annotations: for a callable object, its __call__."""
    return func if inspect.isroutine(func) else type(func).__call__


def _parameters_of(func: Callable[..., Any], owner: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidAgent(f"{owner}: {shorten(func)} is not a function with a signature") from error
    if parameters and parameters[0].name == "self":
        raise InvalidAgent(
            f"{owner} takes 'self', but a tool has no agent to be called on",
            way_out="write @staticmethod below @tool and leave 'self' out",
        )
    for item in parameters:
        if item.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            raise InvalidAgent(
                f"{owner}: the parameter {item.name!r} has no name in a call",
                way_out="a model gives arguments by name: leave '*' and '/' out of the signature",
            )
    return parameters


def _required(parameters: list[inspect.Parameter]) -> list[str]:
    return [
        item.name
        for item in parameters
        if item.default is inspect.Parameter.empty and item.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _schema(
    parameters: list[inspect.Parameter], readers: dict[str, JsonType], about: dict[str, str]
) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    defs: dict[str, Any] = {}
    for item in parameters:
        if item.name not in readers:
            continue
        described = dict(readers[item.name].schema)
        if item.name in about:
            described.setdefault("description", about[item.name])
        if item.default is not inspect.Parameter.empty:
            described |= _default(item.default)
        properties[item.name] = described
        defs |= readers[item.name].defs
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": _required(parameters)}
    return {**schema, "$defs": defs} if defs else schema


def _default(value: Any) -> dict[str, Any]:
    if isinstance(value, Enum):
        value = value.value
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return {"default": value} if value is None or isinstance(value, str | int | float | dict | list) else {}
