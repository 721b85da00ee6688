"""`Configuration`: options by name, as Flink's programs hand them to an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.rendering.masked_repr import without_secrets


class Configuration:
    """Options by name. Any name can be set; an environment rejects the names it does not know.

    ```python
    from emberflow.streams import Configuration, StreamExecutionEnvironment

    config = Configuration().set_integer("parallelism.default", 2)
    config.set_string("execution.checkpointing.interval", "10 s")
    env = StreamExecutionEnvironment.get_execution_environment(config, engine="local")
    assert env.get_parallelism() == 2
    assert env.get_checkpoint_config().get_checkpoint_interval() == 10_000
    ```
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration with these options."""
        made = cls()
        for key, value in map.items():
            made._set(key, value)
        return made

    def get_string(self, key: str, default_value: str | None = None) -> str | None:
        """The option as a string."""
        value = self._values.get(key)
        return default_value if value is None else to_text(value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Sets an option."""
        return self._set(key, value)

    def get_integer(self, key: str, default_value: int | None = None) -> int | None:
        """The option as a whole number; one that is none raises `InvalidArgument`."""
        value = self._values.get(key)
        return default_value if value is None else as_integer(key, value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Sets an option to a whole number."""
        return self._set(key, as_integer(key, value))

    def get_boolean(self, key: str, default_value: bool | None = None) -> bool | None:
        """The option as a truth value; anything but `true` and `false` raises `InvalidArgument`."""
        value = self._values.get(key)
        return default_value if value is None else as_boolean(key, value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Sets an option to a truth value."""
        return self._set(key, as_boolean(key, value))

    def get_float(self, key: str, default_value: float | None = None) -> float | None:
        """The option as a number; one that is none raises `InvalidArgument`."""
        value = self._values.get(key)
        return default_value if value is None else as_float(key, value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Sets an option to a number."""
        return self._set(key, as_float(key, value))

    def get_bytearray(self, key: str, default_value: bytearray | None = None) -> bytearray | None:
        """The option as bytes."""
        value = self._values.get(key)
        if value is None:
            return default_value
        return (
            bytearray(value) if isinstance(value, bytes | bytearray) else bytearray(to_text(value), "utf-8")
        )

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Sets an option to bytes."""
        return self._set(key, bytes(value))

    def key_set(self) -> set[str]:
        """The names of all options that are set."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Whether the option is set."""
        return key in self._values

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Adds the options of another configuration, with the prefix before their names."""
        for key, value in other._values.items():
            self._set(f"{prefix or ''}{key}", value)
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Adds the options to a dictionary, with their values as they were set."""
        target_dict.update(self.items())

    def to_dict(self) -> dict[str, str]:
        """All options as strings."""
        return {key: to_text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Removes an option; returns whether it was set."""
        return self._values.pop(key, None) is not None

    def items(self) -> Iterator[tuple[str, Any]]:
        """All options with their values as they were set."""
        yield from self._values.items()

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """The parts of a list option: `a;b`, `[a, b]`, or lines that begin with a dash."""
        text = (value or "").strip()
        lines = text.splitlines()
        if text.startswith("[") and text.endswith("]"):
            parts = text[1:-1].split(",")
        elif lines and all(line.lstrip().startswith("- ") for line in lines):
            parts = [line.lstrip()[2:] for line in lines]
        else:
            parts = text.split(";")
        return [part.strip().strip("'\"") for part in parts if part.strip()]

    def _set(self, key: str, value: Any) -> Configuration:
        given: Any = key
        if not isinstance(given, str) or not given:
            raise InvalidArgument(
                f"the name of an option is a string that is not empty, not {shorten(given)}"
            )
        if value is None:
            raise InvalidArgument(f"the option {key!r} cannot be None", way_out="use remove_config()")
        self._values[key] = value
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Configuration:
        return Configuration(self)

    def __repr__(self) -> str:
        return shorten(self.to_dict(), 400)

    def __str__(self) -> str:
        shown = without_secrets(self.to_dict())
        return f"{{{', '.join([f'{key}={value}' for key, value in shown.items()])}}}"


def to_text(value: Any) -> str:
    """A value as a configuration file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return ";".join(to_text(item) for item in items)
    if isinstance(value, dict):
        pairs: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return ",".join(f"{to_text(name)}:{to_text(item)}" for name, item in pairs.items())
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def as_integer(key: str, value: Any) -> int:
    """A whole number, or a string of one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value) if isinstance(value, str) else int("")
    except ValueError:
        raise _unfit(key, value, "a whole number") from None


def as_float(key: str, value: Any) -> float:
    """A number, or a string of one."""
    try:
        return float("" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise _unfit(key, value, "a number") from None


def as_boolean(key: str, value: Any) -> bool:
    """True or False, or one of their names in any case."""
    text = to_text(value).strip().lower()
    if text not in ("true", "false"):
        raise _unfit(key, value, "true or false")
    return text == "true"


def _unfit(key: str, value: Any, expected: str) -> InvalidArgument:
    return InvalidArgument(f"the option {key!r} is {shorten(value)}", way_out=f"it must be {expected}")
