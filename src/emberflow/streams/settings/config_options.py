"""`ConfigOptions.key("name").int_type().default_value(1)`: how PyFlink's programs describe an option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigOption(Generic[T]):
    """The name, type and default of an option."""

    key: str
    default: T | None = None


class ConfigOptions:
    """Where the description of an option begins."""

    @staticmethod
    def key(key: str) -> OptionBuilder:
        """Begins the description of the option with this name."""
        return OptionBuilder(key)


class OptionBuilder:
    def __init__(self, key: str) -> None:
        self._key = key

    def boolean_type(self) -> TypedOptionBuilder[bool]:
        return TypedOptionBuilder(self._key)

    def int_type(self) -> TypedOptionBuilder[int]:
        return TypedOptionBuilder(self._key)

    def long_type(self) -> TypedOptionBuilder[int]:
        return TypedOptionBuilder(self._key)

    def float_type(self) -> TypedOptionBuilder[float]:
        return TypedOptionBuilder(self._key)

    def double_type(self) -> TypedOptionBuilder[float]:
        return TypedOptionBuilder(self._key)

    def string_type(self) -> TypedOptionBuilder[str]:
        return TypedOptionBuilder(self._key)


class TypedOptionBuilder(Generic[T]):
    def __init__(self, key: str) -> None:
        self._key = key

    def default_value(self, value: T) -> ConfigOption[T]:
        return ConfigOption(self._key, value)

    def no_default_value(self) -> ConfigOption[Any]:
        return ConfigOption(self._key)
