"""Copies for isolation: what a function emits, or an action sends, stores or receives, is not affected by later changes.

Plain data is copied here, quickly; immutable values are their own copies; everything else is left to `copy.deepcopy`,
and to pickle if that fails.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import functools
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from operator import is_
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar
from uuid import UUID

from emberflow.errors import EmberflowError
from emberflow.events.agent_events import Event
from emberflow.events.codecs import decode, encode
from emberflow.events.model_shape import is_model
from emberflow.events.output_tag import OutputTag
from emberflow.events.types.row import Row, shared_row

E = TypeVar("E", bound=Event)

UNCHANGEABLE = frozenset(
    {
        str, int, float, bool, type(None), bytes, complex, frozenset, Decimal, Fraction, UUID, range, type,
        dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone, FunctionType, BuiltinFunctionType,
        OutputTag,
    }
)  # fmt: skip


def copied(value: Any) -> Any:
    """An equal value that shares nothing mutable."""
    if value.__class__ in UNCHANGEABLE:
        return value
    try:
        return walked_copy(value)
    except RecursionError:
        # Nested too deeply, or a structure that contains itself.
        return _whole(value)


def own(value: Any) -> Any:
    """What a step emits in the place of a function's result whose class is not in `UNCHANGEABLE`: callers test that
    themselves, without a call. Nearly all others are tuples and rows of plain values."""
    kind = value.__class__
    if kind is tuple:
        for item in value:
            if item.__class__ not in UNCHANGEABLE:
                break
        else:
            return value
        for item in value:
            inner: Any = item.__class__
            if inner not in UNCHANGEABLE and (
                inner is not tuple or not UNCHANGEABLE.issuperset(map(type, item))
            ):
                return copied(value)
        return value
    if kind is Row:
        for item in value._values:
            if item.__class__ not in UNCHANGEABLE:
                return copied(value)
        return shared_row(value)
    return copied(value)


def is_changeable(value: Any) -> bool:
    """Whether a change of the value would be seen by whoever else has it, so that everybody needs a copy."""
    kind: Any = value.__class__
    if kind in UNCHANGEABLE or (kind is tuple and UNCHANGEABLE.issuperset(map(type, value))):
        return False
    return copied(value) is not value


def extend_isolated(out: list[Any], results: Iterable[Any]) -> None:
    """Appends what a function returned or yielded. A mutable result is copied at once: the function may keep it, in its
    state or in itself, and change it before the records of the batch are processed downstream."""
    append = out.append
    for result in results:
        append(result if result.__class__ in UNCHANGEABLE else own(result))


def isolated(values: Any) -> list[Any]:
    """The same records for another receiver; the same list if none of them can be changed."""
    kinds = set(map(type, values))
    if kinds <= UNCHANGEABLE:
        return values
    if kinds == {tuple} and UNCHANGEABLE.issuperset(map(type, chain.from_iterable(values))):
        return values
    return list(map(copied, values))


def copied_event(event: E) -> E:
    """The same event for another receiver."""
    kind = event.__class__
    if not is_plain_event(kind):
        return copied(event)
    made = _NEW(kind)
    # Most of it is immutable, so a shallow copy is made and the rest is replaced in it.
    made.__dict__ = fields = event.__dict__.copy()
    try:
        for name, value in event.__dict__.items():
            if value.__class__ not in UNCHANGEABLE:
                fields[name] = walked_copy(value)
    except RecursionError:
        return _whole(event)
    return made


_NEW: Any = object.__new__


def walked_copy(value: Any) -> Any:
    """The same; raises RecursionError for a value that is nested too deeply, or contains itself."""
    kind: Any = value.__class__
    if kind is dict:
        # Names are hashable and therefore not changed.
        made = value.copy()
        for name, item in value.items():
            if item.__class__ not in UNCHANGEABLE and (other := walked_copy(item)) is not item:
                made[name] = other
        return made
    if kind is tuple:
        for item in value:
            if item.__class__ not in UNCHANGEABLE:
                items = [walked_copy(item) for item in value]
                return value if all(map(is_, items, value)) else tuple(items)
        return value
    if kind is list:
        return [item if item.__class__ in UNCHANGEABLE else walked_copy(item) for item in value]
    if kind in UNCHANGEABLE:
        return value
    if kind is set:
        return set(value)
    if kind is Row:
        return value._shape(walked_copy(value._values))
    if isinstance(value, Enum):
        return value
    if isinstance(value, Event) and is_plain_event(type(value)):
        return copied_event(value)
    if _is_plain_object(kind):
        made = _NEW(kind)
        made.__dict__.update(walked_copy(value.__dict__))
        return made
    names = _frozen_fields(kind)
    if names and all(getattr(value, name).__class__ in UNCHANGEABLE for name in names):
        return value
    return _whole(value)


def copied_without_models(value: Any) -> Any:
    """A copy for the attributes of an event, in which pydantic models have become dictionaries."""
    if value.__class__ in UNCHANGEABLE:
        return value
    try:
        return plain_copy(value)
    except RecursionError:
        return _whole(value)


def plain_copy(value: Any) -> Any:
    """The same; raises RecursionError for a value that is nested too deeply, or contains itself."""
    kind: Any = value.__class__
    if kind is dict:
        return {
            name: item if item.__class__ in UNCHANGEABLE else plain_copy(item) for name, item in value.items()
        }
    if kind is list:
        return [item if item.__class__ in UNCHANGEABLE else plain_copy(item) for item in value]
    if kind is tuple:
        for item in value:
            if item.__class__ not in UNCHANGEABLE:
                return tuple([plain_copy(item) for item in value])
        return value
    return value.model_dump() if is_model(kind) else walked_copy(value)


def _whole(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        try:
            return decode(encode(value))
        except EmberflowError:
            # A lock or a connection: the code that has to store it reports the error.
            return value


@functools.lru_cache(maxsize=1024)
def is_plain_event(kind: type[Any]) -> bool:
    """Whether objects of a class are events whose whole content is in their `__dict__`."""
    return (
        issubclass(kind, Event)
        and kind.__new__ is object.__new__
        and not any(base.__dict__.get("__slots__") for base in kind.__mro__[:-1])
    )


@functools.lru_cache(maxsize=1024)
def _is_plain_object(kind: type[Any]) -> bool:
    """Whether `copy.deepcopy` would copy nothing but the `__dict__` of such objects. Not frozen dataclasses: most of them are
    their own copies."""
    return (
        kind.__new__ is object.__new__
        and "__dict__" in dir(kind)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and not any(base.__dict__.get("__slots__") for base in kind.__mro__[:-1])
        and not any(
            hasattr(kind, name)
            for name in ("__deepcopy__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
        )
        and getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None)
        and not _frozen_fields(kind)
    )


@functools.lru_cache(maxsize=1024)
def _frozen_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a frozen dataclass."""
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return ()
    return tuple(field.name for field in dataclasses.fields(kind))
