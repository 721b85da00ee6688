"""Stable hashes and key groups.

A key belongs to the same group in every process, on every engine and after every restart, so Python's own seeded `hash`
is never used. Keys that compare equal in Python (1, 1.0 and True; a named tuple and its plain tuple) are in the same group.
Objects are hashed by class and fields, never by their pickled bytes, which differ between equal objects whose fields
happen to share a string.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, time, timedelta
from enum import Enum
from numbers import Number
from typing import Any
from zlib import crc32

from emberflow.errors import EmberflowError
from emberflow.events.stored_types import stable_path
from emberflow.events.types.row import Row, equal_parts

DEFAULT_MAX_PARALLELISM = 64
_MASK = 0xFFFFFFFF
_CACHE_LIMIT = 200_000


def stable_hash(key: Any) -> int:
    """A 32-bit hash that is equal for equal keys in every process."""
    kind: Any = type(key)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return crc32(key.encode("utf-8", "surrogatepass"))
    if kind is int or kind is bool:
        # Python hashes numbers without a seed, and equal ones of any type equally.
        return _mix(hash(key))
    if kind is tuple:
        return _of_sequence(key)
    if kind is bytes:
        return crc32(key, 1)
    if key is None:
        return 0x9E3779B9
    return _of_other(key)


def _of_sequence(items: Any) -> int:
    digest = 0x345678
    for item in items:
        digest = _mix(digest * 1000003 ^ stable_hash(item))
    return digest


def _of_set(items: Any) -> int:
    digest = len(items)
    for item in items:
        digest ^= stable_hash(item)
    return _mix(digest)


_TUPLE_HASH: Any = getattr(tuple, "__hash__")  # noqa: B009 - a type checker cannot know it


def _of_other(key: Any) -> int:
    if key.__class__.__module__ == "numpy" and hasattr(key, "item"):
        # numpy.str_("x") equals "x", and both are one key wherever keys are compared.
        plain = key.item()
        if type(plain).__module__ != "numpy" and hash(plain) == hash(key) and plain == key:
            return stable_hash(plain)
    if isinstance(key, Number):
        # A NaN equals nothing, not even itself; all of them share one group.
        return _mix(hash(key)) if key == key else 0x7FF80000
    own_hash: Any = key.__class__.__hash__
    if isinstance(key, tuple) and own_hash is _TUPLE_HASH:
        return _of_sequence(key)
    if isinstance(key, str) and own_hash is str.__hash__:
        return crc32(str.encode(key, "utf-8", "surrogatepass"))
    if isinstance(key, frozenset | set):
        return _of_set(key)
    # Lists and dictionaries are not keys themselves, but fields of keys.
    if isinstance(key, list):
        return _of_sequence(key)
    if isinstance(key, dict):
        return _of_set(key.items())
    if isinstance(key, Row):
        return _of_sequence(("Row", *equal_parts(key)))
    other: Any = key  # pyright: ignore[reportUnknownVariableType]
    if callable(other):
        return stable_hash(stable_path(other))
    return _of_sequence((stable_path(other.__class__), _fields(other)))


def _fields(key: Any) -> Any:
    """The fields that make an object equal to another of its class."""
    if isinstance(key, Enum):
        return key.name
    if isinstance(key, datetime | time):
        return _of_time(key)
    if is_dataclass(key):
        compared = [field for field in fields(key) if (field.compare if field.hash is None else field.hash)]
        return tuple(getattr(key, field.name) for field in compared)
    return _reduced(key)


def _reduced(key: Any) -> Any:
    """What pickle would keep."""
    reduced = key.__reduce_ex__(4)
    if isinstance(reduced, str):
        return reduced
    _, arguments, *state = reduced
    return (
        arguments,
        *(part if part is None or isinstance(part, dict | tuple) else list(part) for part in state),
    )


def _of_time(key: datetime | time) -> Any:
    offset = key.utcoffset()
    if offset is None:
        # The second of two equal hours when clocks are set back equals the first one.
        return _reduced(key.replace(fold=0) if key.fold else key)
    if isinstance(key, datetime):
        return (key - offset).replace(tzinfo=None, fold=0).isoformat()
    return "utc", *time_in_utc(key, offset)


def time_in_utc(key: time, offset: timedelta) -> tuple[int, int]:
    """Seconds and microseconds; times of different zones are equal if these are."""
    since = timedelta(hours=key.hour, minutes=key.minute, seconds=key.second) - offset
    return since // timedelta(seconds=1), key.microsecond


def _mix(number: int) -> int:
    """The finalizer of murmur3 over the number's low and high bits."""
    value = (number ^ (number >> 32)) & _MASK
    value ^= value >> 16
    value = value * 0x85EBCA6B & _MASK
    value ^= value >> 13
    value = value * 0xC2B2AE35 & _MASK
    return value ^ (value >> 16)


class NoKeyGroup(Exception):
    """A key whose value cannot be read like that of a stored object (it contains a lock, for example), so that another
    process would not find the same group for it."""

    def __init__(self, key: Any) -> None:
        super().__init__(f"the key of class {type(key).__name__} has no group")
        self.key = key


class KeyGroups(dict[Any, int]):
    """key -> group, with a cache: `groups[key]` costs a dictionary lookup once a key is known."""

    def __init__(self, max_parallelism: int) -> None:
        super().__init__()
        self.max_parallelism = max_parallelism

    def __missing__(self, key: Any) -> int:
        # crc32's low bits alone spread poorly over a power of two.
        try:
            group = _mix(stable_hash(key)) % self.max_parallelism
        except EmberflowError:
            raise  # More specific: a class that cannot be imported here.
        except Exception as error:
            raise NoKeyGroup(key) from error
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        self[key] = group
        return group
