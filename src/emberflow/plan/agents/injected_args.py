"""Arguments of tools that the framework fills in, and that the model neither sees nor chooses: where each value comes from.

Part of the plan; the values are read when a tool is called (`operators/agents/resources/injected_arguments.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from emberflow.errors import InvalidAgent, did_you_mean, shorten


class ToolParameterSource(StrEnum):
    """Where the value of an injected argument is read."""

    CONFIG = "config"
    SENSORY_MEMORY = "sensory_memory"
    SHORT_TERM_MEMORY = "short_term_memory"

    @classmethod
    def _missing_(cls, value: object) -> ToolParameterSource | None:
        return next((item for item in cls if item.value == str(value).lower()), None)


@dataclass(frozen=True, slots=True)
class InjectedArg:
    """The source of an injected argument: a key of the agent's configuration, or a path in memory."""

    source: ToolParameterSource = ToolParameterSource.SENSORY_MEMORY
    key: str | None = None
    """Without a key, the name of the argument."""

    @staticmethod
    def from_config(key: str) -> InjectedArg:
        """Read from the agent's configuration: `config.set_str(key, …)`."""
        return InjectedArg(ToolParameterSource.CONFIG, key)

    @staticmethod
    def from_sensory_memory(path: str) -> InjectedArg:
        """Read from the memory of the run."""
        return InjectedArg(ToolParameterSource.SENSORY_MEMORY, path)

    @staticmethod
    def from_short_term_memory(path: str) -> InjectedArg:
        """Read from the memory of the key."""
        return InjectedArg(ToolParameterSource.SHORT_TERM_MEMORY, path)


InjectedArgs = Mapping[str, "InjectedArg | Mapping[str, str]"]


def injected_args_of(given: InjectedArgs | None, owner: str) -> dict[str, InjectedArg]:
    """Sources by name of the argument, each with a key. Raises InvalidAgent, naming `owner`."""
    return {name: _source(item, name, owner) for name, item in (given or {}).items()}


def _source(item: Any, name: str, owner: str) -> InjectedArg:
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, Any]", item)
        for field in fields:
            if field not in ("source", "key"):
                raise InvalidAgent(
                    f"{owner}: the injected argument {name!r} has no field {field!r}"
                    f"{did_you_mean(field, ('source', 'key'))}"
                )
        source = fields.get("source", ToolParameterSource.SENSORY_MEMORY)
        try:
            item = InjectedArg(ToolParameterSource(source), fields.get("key"))
        except ValueError:
            known = [kind.value for kind in ToolParameterSource]
            raise InvalidAgent(
                f"{owner}: the injected argument {name!r} cannot be read from {shorten(source)}"
                f"{did_you_mean(source, known)}",
                way_out=f"use one of {', '.join(known)}",
            ) from None
    if not isinstance(item, InjectedArg):
        raise InvalidAgent(
            f"{owner}: the injected argument {name!r} must be an InjectedArg, got {shorten(item)}",
            way_out=f"injected_args={{{name!r}: InjectedArg.from_config('…')}}",
        )
    return item if item.key else replace(item, key=name)


def merged(
    first: Mapping[str, InjectedArg], second: Mapping[str, InjectedArg], owner: str
) -> dict[str, InjectedArg]:
    """The declarations of `@tool` and of a description, merged. Raises InvalidAgent if they contradict each other."""
    for name, item in second.items():
        if first.get(name, item) != item:
            raise InvalidAgent(
                f"{owner}: the injected argument {name!r} has two sources, {_shown(first[name])} and {_shown(item)}",
                way_out="declare it once",
            )
    return {**first, **second}


def check_names(injected: Iterable[str], parameters: Iterable[str], owner: str) -> None:
    """Raises InvalidAgent for an injected argument that the function does not take."""
    known = list(parameters)
    for name in injected:
        if name not in known:
            raise InvalidAgent(
                f"{owner} has no parameter {name!r} to inject{did_you_mean(name, known)}",
                way_out=f"it takes: {', '.join(known) or 'no arguments'}",
            )


def _shown(item: InjectedArg) -> str:
    return f"{item.source.value} {item.key!r}"
