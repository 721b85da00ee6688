"""Settings of agents: options with a name, a type and a default, as in Flink."""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

from emberflow.errors import InvalidArgument, PackageMissing, describe_cause
from emberflow.plan.engine_options import ENGINE_OPTION_NAMES, EngineOption

T = TypeVar("T")
V = TypeVar("V")


class ConfigOption(Generic[T]):
    """One setting: its key, the type of its values and a default.

    `check` returns what is wrong with a value, or None. Without a default the option is a `ConfigOption[T | None]`.

    ```python
    from emberflow.agents import ConfigOption, Configuration

    RETRIES = ConfigOption("my-agent.retries", int, 3)
    settings = Configuration().set(RETRIES, 5)
    assert settings.get(RETRIES) == 5
    ```
    """

    __slots__ = ("_check", "_default", "_key", "_type")

    @overload
    def __init__(
        self: ConfigOption[V],
        key: str,
        config_type: type[V],
        default: V,
        check: Callable[[V], str | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: ConfigOption[V | None],
        key: str,
        config_type: type[V],
        default: None = None,
        check: Callable[[V], str | None] | None = None,
    ) -> None: ...
    def __init__(
        self,
        key: str,
        config_type: type[Any],
        default: Any = None,
        check: Callable[[Any], str | None] | None = None,
    ) -> None:
        self._key = key
        self._type = config_type
        self._default = default
        self._check = check

    def get_key(self) -> str:
        """The name of the option in files and in `set_str`."""
        return self._key

    def get_type(self) -> type[Any]:
        """The type of its values."""
        return self._type

    def get_default_value(self) -> T:
        """The value that `Configuration.get` returns if nothing was set."""
        return self._default

    def convert(self, value: Any) -> T:
        """Converts a value to the option's type; raises `InvalidArgument`."""
        wanted = self._type
        made: Any = value
        try:
            if issubclass(wanted, Enum) and not isinstance(value, wanted):
                made = _enum(wanted, value)
            elif wanted is bool and isinstance(value, str):
                made = {"true": True, "false": False}[value.lower()]
            elif wanted in (int, float, str) and not isinstance(value, bool):
                turn: Any = wanted
                made = turn(value)
                if wanted is int and isinstance(value, float) and made != value:
                    raise ValueError("the number has a fractional part")
            if not isinstance(made, wanted) or (isinstance(made, bool) and wanted is not bool):
                raise TypeError(f"expected {wanted.__name__}")
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            allowed = (
                f"one of {[item.value for item in wanted]}" if issubclass(wanted, Enum) else wanted.__name__
            )
            raise InvalidArgument(
                f"the option {self._key!r} cannot be {value!r}", cause=f"it must be {allowed}"
            ) from error
        problem = self._check(made) if self._check else None
        if problem:
            raise InvalidArgument(f"the option {self._key!r} cannot be {value!r}", cause=problem)
        return cast("T", made)

    def __repr__(self) -> str:
        return f"ConfigOption({self._key!r}, default={self._default!r})"


def _enum(wanted: type[Enum], value: Any) -> Enum:
    for item in wanted:
        if str(value).lower() in (item.name.lower(), str(item.value).lower()):
            return item
    raise ValueError(value)


class Configuration:
    """Values by option or by key. Values are plain data, so that a plan can contain them."""

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    @overload
    def set(self, option: ConfigOption[T], value: T | str) -> Configuration: ...
    @overload
    def set(self, option: str, value: Any) -> Configuration: ...
    def set(self, option: ConfigOption[Any] | str, value: Any) -> Configuration:
        """Sets an option, given as such or by its key; use `set_str` and the like for keys of your own.

        Values may be given as strings, an enum by its name or value. An unknown key or an invalid value raises
        `InvalidArgument`, which suggests the closest name.
        """
        if isinstance(option, str):
            from emberflow.plan.agents.options import option_named

            option = option_named(option)
        elif not isinstance(option, ConfigOption):
            raise InvalidArgument(
                f"{option!r} is not an option", way_out="use AgentExecutionOptions…, or set_str(key, value)"
            )
        self._values[option.get_key()] = option.convert(value)
        return self

    def get(self, option: ConfigOption[T]) -> T:
        """The value that was set, or the option's default."""
        key = option.get_key()
        return option.convert(self._values[key]) if key in self._values else option.get_default_value()

    def set_str(self, key: str, value: str | None) -> None:
        """Sets a key of your own, or removes it with None; raises `InvalidArgument` if it looks like a misspelt option."""
        reject_near_misses(key)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = str(value)

    def set_int(self, key: str, value: int) -> None:
        """Sets a key of your own; raises `InvalidArgument` if it looks like a misspelt option."""
        reject_near_misses(key)
        self._values[key] = int(value)

    def set_float(self, key: str, value: float) -> None:
        """Sets a key of your own; raises `InvalidArgument` if it looks like a misspelt option."""
        reject_near_misses(key)
        self._values[key] = float(value)

    def set_bool(self, key: str, value: bool) -> None:
        """Sets a key of your own; raises `InvalidArgument` if it looks like a misspelt option."""
        reject_near_misses(key)
        self._values[key] = bool(value)

    def get_str(self, key: str, default: str | None = None) -> str | None:
        """The value of a key; raises `InvalidArgument` if it does not have this type."""
        return self._typed(key, str, default)

    def get_int(self, key: str, default: int | None = None) -> int | None:
        """The value of a key; raises `InvalidArgument` if it does not have this type."""
        return self._typed(key, int, default)

    def get_float(self, key: str, default: float | None = None) -> float | None:
        """The value of a key; raises `InvalidArgument` if it does not have this type."""
        return self._typed(key, float, default)

    def get_bool(self, key: str, default: bool | None = None) -> bool | None:
        """The value of a key; raises `InvalidArgument` if it does not have this type."""
        return self._typed(key, bool, default)

    def load(self, path: str | Path) -> Configuration:
        """Reads settings from a file of JSON or YAML (extra `yaml`): keys and values.

        Nested objects are keys with dots, and settings below `agent` are taken, as in Flink's configuration files. Raises
        `InvalidArgument`, also for a key that looks like a misspelt option.
        """
        found = _flat(_below_agent(read_settings(path)))
        for key in found:
            reject_near_misses(key)
        self._values.update(found)
        return self

    load_from_file = load

    def update(self, other: Configuration) -> None:
        """Copies all values of another configuration into this one."""
        self._values.update(other._values)

    def copy(self) -> Configuration:
        """A configuration with the same values."""
        return Configuration(self._values)

    def to_dict(self) -> dict[str, Any]:
        """All values that were set, by key."""
        return dict(self._values)

    def _typed(self, key: str, kind: type[Any], default: Any) -> Any:
        return ConfigOption[Any](key, kind).convert(self._values[key]) if key in self._values else default

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Configuration({self._values!r})"


def reject_near_misses(key: str) -> None:
    """Raises for a key that is almost an option's name, or an engine's: keys of your own are allowed, typos are not."""
    from emberflow.plan.agents.options import all_options, is_type_level

    known = all_options()
    if is_type_level(key):
        return
    # The clock is for tests, and a likely key of a program's own.
    if key in ENGINE_OPTION_NAMES and key != EngineOption.CLOCK:
        raise InvalidArgument(
            f"{key!r} is an option of the engine, not of agents",
            way_out=f"set it on the environment: env.set_option({key!r}, …)",
        )
    near = [] if key in known else get_close_matches(key, known, 1, 0.85)
    if near:
        raise InvalidArgument(
            f"there is no option {key!r}; did you mean {near[0]!r}?",
            way_out="use the option's name, or choose a key that differs more from it",
        )


def read_settings(path: str | Path) -> dict[str, Any]:
    """The object in a file of JSON or YAML."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        found: Any = _yaml(text, path) if Path(path).suffix in (".yaml", ".yml") else json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("expected an object of keys and values")
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"the settings file {path} cannot be read", cause=describe_cause(error)
        ) from error
    return cast("dict[str, Any]", found)


def _yaml(text: str, path: str | Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise PackageMissing(
            f"the settings file {path} is YAML, which needs the package pyyaml",
            way_out="pip install 'emberflow[yaml]', or write the settings as JSON",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _below_agent(settings: dict[str, Any]) -> dict[str, Any]:
    """Flink's configuration file has the settings of agents below `agent`, beside its own."""
    inside: Any = settings.get("agent")
    return cast("dict[str, Any]", inside) if isinstance(inside, dict) else settings


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found.update(_flat(cast("dict[str, Any]", value), f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = value
    return found
