"""Reads the injected arguments of a tool for one call: from the configuration or the memory of the action that calls it."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.plan.agents.injected_args import InjectedArg, ToolParameterSource
from emberflow.state.memory_object import MemoryObject


def injected_arguments(tool: Any, ctx: Any) -> dict[str, Any]:
    """The injected arguments of a tool, by name: `await tool.call(arguments_of_the_model, **injected_arguments(tool, ctx))`.

    `ctx` is the context of the action. Empty for a tool without injected arguments. An argument with a default may be
    missing; raises InvalidArgument for any other that is.
    """
    injected: dict[str, InjectedArg] = getattr(tool, "injected_args", None) or {}
    if not injected:
        return {}
    optional: Any = getattr(tool, "optional_args", ())
    found: dict[str, Any] = {}
    for name, item in injected.items():
        value = _read(item, ctx)
        if value is not _MISSING:
            found[name] = value
        elif name not in optional:
            raise _missing(tool.name, name, item)
    return found


_MISSING: Any = object()


def _read(item: InjectedArg, ctx: Any) -> Any:
    key = item.key or ""
    if item.source is ToolParameterSource.CONFIG:
        return ctx.config.to_dict().get(key, _MISSING)
    is_run = item.source is ToolParameterSource.SENSORY_MEMORY
    memory: MemoryObject = ctx.sensory_memory if is_run else ctx.short_term_memory
    if not memory.is_exist(key):
        return _MISSING
    value = memory.get(key)
    return _plain(value) if isinstance(value, MemoryObject) else value


def _plain(place: MemoryObject) -> dict[str, Any]:
    """A nested object as a dictionary."""
    values = {name: place.get(name) for name in place.keys()}  # noqa: SIM118
    return {
        name: _plain(value) if isinstance(value, MemoryObject) else value for name, value in values.items()
    }


def _missing(tool: str, name: str, item: InjectedArg) -> InvalidArgument:
    where = (
        "configuration" if item.source is ToolParameterSource.CONFIG else item.source.value.replace("_", " ")
    )
    ways = {
        ToolParameterSource.CONFIG: f"agents_env.get_config().set_str({item.key!r}, …)",
        ToolParameterSource.SENSORY_MEMORY: f"ctx.sensory_memory.set({item.key!r}, …) before the tool is called",
        ToolParameterSource.SHORT_TERM_MEMORY: f"ctx.short_term_memory.set({item.key!r}, …) before the tool is called",
    }
    return InvalidArgument(
        f"the argument {name!r} of the tool {tool!r} is injected from the {where}, which has no {item.key!r}",
        way_out=ways[item.source],
    )
