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
from typing import Any, Self, cast

from emberflow.agents.tools.calling import call_function, uniform_call
from emberflow.agents.tools.tool_docstring import read_docstring
from emberflow.agents.tools.tool_schema import JsonType, Mismatch, json_type, read_fields, resolved_hints
from emberflow.errors import InvalidAgent, InvalidArgument, shorten
from emberflow.operators.agents.resources.resource_views import ResourceView, unwrapped
from emberflow.plan.agents.injected_args import (
    InjectedArg,
    InjectedArgs,
    check_names,
    injected_args_of,
    merged,
)
from emberflow.plan.agents.python_function import PythonFunction
from emberflow.plan.agents.resources import ResourceType, SerializableResource


class ToolType(Enum):
    """The origin of a tool."""

    FUNCTION = "function"
    MCP = "mcp"
    MODEL_BUILT_IN = "model_built_in"
    REMOTE_FUNCTION = "remote_function"
    AGENT = "agent"


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
    """Base class of tools. Like a model, a tool may be called concurrently.

    A tool of your own has `metadata` and a `call` that takes the arguments by their names, or as one dictionary in a first
    parameter called `arguments`. It may be a coroutine function; a plain one runs on a thread when an agent calls it.
    """

    metadata: ToolMetadata

    @staticmethod
    def from_callable(func: Callable[..., Any], *, injected_args: InjectedArgs | None = None) -> FunctionTool:
        """A tool created from a function: its name, docstring and annotations describe it to the model."""
        return FunctionTool(func, injected_args=injected_args)

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
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The result. Raises InvalidArgument, with a message for the model, if the arguments are invalid."""

    def _shape_fields(self) -> dict[str, Any]:
        return {"metadata": self.metadata, **super()._shape_fields()}

    def __getstate__(self) -> dict[str, Any]:
        # The context belongs to the process that opened the tool.
        return {name: value for name, value in self.__dict__.items() if name != "resource_context"}


class FunctionTool(Tool):
    """A function as a tool: `FunctionTool(add)`, or `@tool` in an agent.

    The docstring is the description, the annotations are the schema. What the model sends is validated and converted to
    the annotated types: an Enum, a dataclass, a Pydantic model, a datetime. A coroutine function is awaited, a plain
    function runs on a thread.

    Arguments in `injected_args` are hidden from the model: `ctx.call_tool` and the agent loop read them from the
    configuration or from memory, and ignore what a model sends under their names.
    """

    injected_args: dict[str, InjectedArg]

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        injected_args: InjectedArgs | None = None,
    ) -> None:
        self.func = func
        written = func
        while isinstance(written, functools.partial):
            written = written.func
        shown = name or getattr(written, "__name__", type(written).__name__)
        self.injected_args = merged(
            getattr(written, "_injected_args", {}),
            injected_args_of(injected_args, f"tool {shown!r}"),
            f"tool {shown!r}",
        )
        self._read_signature(f"tool {shown!r}")
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

    @property
    def optional_args(self) -> frozenset[str]:
        """The arguments that have defaults."""
        return frozenset(item.name for item in (*self._parameters, *self._hidden) if _has_default(item))

    async def call(self, arguments: Any = None, /, *more: Any, **given: Any) -> Any:
        """Calls the function: `await tool.call({"a": 1})`, `await tool.call(a=1)` or `await tool.call(1)`.

        A dictionary is what a model sent. Injected arguments are used unchanged; a dictionary cannot contain them.
        """
        first: Any = arguments
        if more or not isinstance(first, dict | None):
            given = self._by_name((first, *more), given)
            first = None
        injected = {name: value for name, value in given.items() if name in self.injected_args}
        known = cast("dict[str, Any]", first or {})
        read = self._read(
            {name: value for name, value in {**known, **given}.items() if name not in self.injected_args}
        )
        for item in self._hidden:
            if item.name not in injected and not _has_default(item):
                raise InvalidArgument(
                    f"the tool {self.name!r} needs the injected argument {item.name!r}",
                    way_out=f"call it with ctx.call_tool({self.name!r}, …), or pass {item.name}=… as a keyword argument",
                )
        return await call_function(self.func, **read, **injected)

    def _by_name(self, values: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        names = [item.name for item in self._every if item.kind is item.POSITIONAL_OR_KEYWORD]
        placed = dict(zip(names, values, strict=False))
        for name in placed:
            if name in given:
                raise InvalidArgument(f"the tool {self.name!r} received its argument {name!r} twice")
        if len(values) > len(names):
            raise InvalidArgument(
                f"the tool {self.name!r} received {len(values)} arguments by position",
                way_out=f"it takes: {', '.join(names) or 'no arguments'}",
            )
        return {**placed, **given}

    def _read_signature(self, owner: str) -> None:
        self._every = every = _parameters_of(self.func, owner)
        if not any(item.kind is item.VAR_KEYWORD for item in every):
            check_names(self.injected_args, [item.name for item in every], owner)
        self._parameters = [item for item in every if item.name not in self.injected_args]
        self._hidden = [item for item in every if item.name in self.injected_args]

    def _read(self, given: dict[str, Any]) -> dict[str, Any]:
        takes = ", ".join(self._readers) or "no arguments"
        rest: dict[str, Any] = {}
        if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in self._parameters):
            rest = {name: value for name, value in given.items() if name not in self._readers}
        known = {name: value for name, value in given.items() if name not in rest}
        try:
            return {**read_fields(self._readers, _required(self._parameters), known, "arguments"), **rest}
        except Mismatch as error:
            raise InvalidArgument(
                f"invalid arguments for the tool {self.name!r}: {error}",
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

    def _shape_fields(self) -> dict[str, Any]:
        """The function by its names, if it can be imported."""
        fields = super()._shape_fields()
        try:
            return {**fields, "func": PythonFunction.from_callable(self.func)}
        except InvalidAgent:
            return fields

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        data = dict(fields)
        shown = data.pop("metadata", None)
        described = cast("dict[str, Any]", shown) if isinstance(shown, dict) else {}
        func = data.get("func")
        if isinstance(func, dict):
            data["func"] = PythonFunction.model_validate(func).as_callable()
        told = {name: described[name] for name in ("name", "description") if name in described}
        return super()._from_shape({**told, **data})

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
            if name not in ("_readers", "_parameters", "_hidden", "_every")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Plans of an older version have no injected arguments.
        vars(self).update({"injected_args": {}, **state})
        self._read_signature(f"tool {self.name!r}")
        self._readers = self._make_readers(self.name)


def as_tool(name: str, found: Any) -> Tool:
    """A tool with this name. The model calls tools by the name of their resource, whatever the function itself is called."""
    if isinstance(found, Tool):
        named = found
        if name and found.name != name:
            named = copy.copy(found)
            named.metadata = replace(found.metadata, name=name)
        plain = unwrapped(named)
        # Where calls are admitted by a gate, they are still made there.
        gated = found.call if unwrapped(found) is not found else named.call
        call = uniform_call(gated, plain.call)
        # A view: the tool of a user remains an instance of its class, with everything else that it has.
        return named if call == named.call else cast("Tool", ResourceView(named, "call", call))
    if callable(found):
        return FunctionTool(found, name=name or None)
    raise InvalidAgent(
        f"{shorten(found)} cannot be used as the tool {name!r}",
        way_out="use a function or an instance of Tool",
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
                f"{owner}: the parameter {item.name!r} cannot be passed by name",
                way_out="models pass arguments by name: leave '*' and '/' out of the signature",
            )
    return parameters


def _required(parameters: list[inspect.Parameter]) -> list[str]:
    return [
        item.name
        for item in parameters
        if not _has_default(item) and item.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _has_default(item: inspect.Parameter) -> bool:
    return item.default is not inspect.Parameter.empty


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
        if _has_default(item):
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
    elif isinstance(value, tuple):
        value = list(cast("tuple[Any, ...]", value))
    return {"default": value} if value is None or isinstance(value, str | int | float | dict | list) else {}
