"""Dataclasses, named tuples and Pydantic models as declared types: dictionaries become objects of the class."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from emberflow.events.types.converters import Converter, TypeMismatch
from emberflow.events.types.instant import Instant
from emberflow.events.types.schemas import has_fields, hints_of
from emberflow.events.types.type_information import RowTypeInfo, TypeInformation, check_declared

T = TypeVar("T", covariant=True)
Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ObjectTypeInfo(TypeInformation[T]):
    """Objects of a class with fields."""

    kind: type[T]

    def __repr__(self) -> str:
        return self.kind.__qualname__


def declared_type(declared: Any) -> TypeInformation[Any] | None:
    """What is applied of a user's declaration: type information, a list of it for a row, and classes with fields. Any other
    only documents."""
    if isinstance(declared, TypeInformation):
        return declared  # pyright: ignore[reportUnknownVariableType]
    row = _listed_row(declared)
    if row is not None:
        return row
    check_declared(declared)
    return ObjectTypeInfo(declared) if has_fields(declared) else None


def _listed_row(declared: Any) -> RowTypeInfo | None:
    return (
        RowTypeInfo(tuple(cast("list[Any]", declared))) if isinstance(declared, list) and declared else None
    )


class ObjectConverter(Converter):
    """Objects of the class as they are, and dictionaries with its fields."""

    def __init__(self, expected: ObjectTypeInfo[Any]) -> None:
        super().__init__(expected)
        self._kind: Any = expected.kind
        self._validates = hasattr(expected.kind, "model_fields")
        self._fields = {name: _maker(hint) for name, hint in hints_of(expected.kind).items()}

    def one(self, value: Any) -> Any:
        if isinstance(value, self._kind):
            return value
        if not isinstance(value, dict):
            raise self.misfit(value)
        try:
            if self._validates:
                return self._kind.model_validate(value)
            return self._kind(**{name: self._item(name, item) for name, item in value.items()})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        except TypeMismatch:
            raise
        except (TypeError, ValueError) as error:
            raise self.misfit(value, str(error)) from None

    def is_right(self, values: Sequence[Any], kinds: set[type[Any]]) -> bool:
        return kinds == {self._kind}

    def _item(self, name: str, item: Any) -> Any:
        make = self._fields.get(name)
        if make is None:
            return item
        try:
            return make(item)
        except TypeMismatch as error:
            raise error.inside(f"field {name!r}") from None


def _maker(hint: Any) -> Make | None:
    """What creates a field's value from that of a table; None if it is the same. None stays None, whatever the type."""
    make = _maker_of_values(hint)
    return None if make is None else lambda value: None if value is None else make(value)


def _maker_of_values(hint: Any) -> Make | None:
    if hint is Instant:
        return lambda value: Instant.of_datetime(value) if isinstance(value, datetime) else value
    if has_fields(hint):
        return ObjectConverter(ObjectTypeInfo(hint)).one
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        return _maker(inner[0]) if len(inner) == 1 else None
    makers = [_maker(argument) for argument in arguments if argument is not Ellipsis]
    if origin is tuple:
        return _tuple_maker(makers, ends=arguments[-1:] != (Ellipsis,))
    if not isinstance(origin, type) or not any(makers):
        return None
    if issubclass(origin, Mapping) and len(makers) == 2:
        key, item = [maker or _same for maker in makers]
        return lambda found: {key(name): item(value) for name, value in found.items()}
    if issubclass(origin, Sequence):
        element = makers[0] or _same
        return lambda found: [element(value) for value in found]
    return None


def _tuple_maker(makers: Sequence[Make | None], *, ends: bool) -> Make:
    """Tables have no tuples: those of one type are arrays, those with an end are structs with the fields f0, f1, …"""
    each = [maker or _same for maker in makers]
    if not ends:
        return lambda found: tuple([each[0](value) for value in found])

    def make(found: Any) -> tuple[Any, ...]:
        values: list[Any] = list(found.values() if isinstance(found, dict) else found)  # pyright: ignore[reportUnknownArgumentType]
        return tuple([make_one(value) for make_one, value in zip(each, values, strict=True)])

    return make


def _same(value: Any) -> Any:
    return value
