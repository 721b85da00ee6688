"""Whether the value of an argument fits its annotation: as far as the annotation leaves no doubt."""

from __future__ import annotations

import collections.abc
import math
import types
import typing
from enum import Enum
from typing import Any, cast

_KINDS: dict[Any, tuple[type[Any], ...]] = {
    str: (str,), int: (int,), float: (int, float), bool: (bool,),
    list: (list, tuple), dict: (dict,), tuple: (list, tuple), set: (set, frozenset, list, tuple),
}  # fmt: skip
_PLAIN = (str, int, float, bool, list, dict, type(None))
"""What a file may contain. Objects of other classes may know how to be what is wanted."""
_LISTS = (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_TABLES = (collections.abc.Mapping, collections.abc.MutableMapping)


def fits(value: Any, hint: Any) -> bool:
    """False only where the annotation leaves no doubt. A class that is not known here may accept anything."""
    return _fits(value, hint, strictly=False)


def fits_exactly(value: Any, hint: Any) -> bool:
    """The same for annotations of which every class is meant: plain data is not an object of a class, elements of lists and
    values of mappings fit as well, and numbers are finite."""
    if not isinstance(value, _PLAIN):
        return True
    return _fits(value, hint, strictly=True)


def shown_hint(hint: Any) -> str:
    """The annotation for a message: `float`, `int or None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        shown = [_shown(item) for item in typing.get_args(hint)]
        return " or ".join(dict.fromkeys(item for item in shown if item))
    return _shown(hint) or str(hint)


def _shown(hint: Any) -> str:
    """One of several."""
    if hint is type(None):
        return "None"
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")


def _fits(value: Any, hint: Any, *, strictly: bool) -> bool:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, item, strictly=strictly) for item in typing.get_args(hint))
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if hint is None or hint is type(None):
        return value is None or (hint is None and not strictly)
    wanted = hint if origin is None else origin
    if strictly and (wanted in _LISTS or wanted in _TABLES):
        wanted = list if wanted in _LISTS else dict
    kinds = _KINDS.get(wanted)
    if kinds is None:
        return _is_object(value, wanted, strictly=strictly)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return False
    if not strictly:
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return False
    inner = typing.get_args(hint)
    if isinstance(value, dict):
        held = cast("dict[Any, Any]", value)
        return not inner or all(fits_exactly(item, inner[-1]) for item in held.values())
    if isinstance(value, (list, tuple)) and len(inner) == 1:
        return all(fits_exactly(item, inner[0]) for item in cast("list[Any]", value))
    return True


def _is_object(value: Any, wanted: Any, *, strictly: bool) -> bool:
    if not isinstance(wanted, type) or wanted is Any:
        return True
    if issubclass(wanted, Enum):
        # A file has the value, or the name, of a member.
        return isinstance(value, wanted) or (
            strictly and any(value in (item.value, item.name) for item in wanted)
        )
    if not strictly or wanted is object:
        return True
    if typing.is_typeddict(cast("type[Any]", wanted)):
        return isinstance(value, dict)
    try:
        return isinstance(value, wanted)
    except TypeError:
        # A protocol.
        return not isinstance(value, (bool, int, float))
