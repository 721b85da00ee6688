"""Lists as keys: a list with a hash, so that everything that finds state by key can use it.

The key selection of a stage makes them (`operators/stage.py`); functions receive a list that equals what they selected.
"""

from __future__ import annotations

from typing import Any

from emberflow.events.stored_types import stored_type


@stored_type(write=list, read=lambda _, items: ListKey(items))
class ListKey(list[Any]):
    """A list that is used as a key. It is a copy, and must not be changed, as no key must."""

    __slots__ = ()

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash((ListKey, *self))


def as_key(key: Any) -> Any:
    """The key with all lists in it replaced by lists that can be hashed; a key without lists as it is."""
    if key.__class__ is list:
        return ListKey(map(as_key, key))
    if key.__class__ is tuple:
        return tuple(map(as_key, key))
    return key
