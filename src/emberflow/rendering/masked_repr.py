"""The repr of any value for errors, logs and listings: fields with the names of secrets are masked."""

from __future__ import annotations

from typing import Any, cast

from emberflow.rendering.plain_text import clean
from emberflow.rendering.secret_names import MASK, is_hidden, scrub

_DEEPEST = 6
_MOST_ITEMS = 10_000
_LOOKED_AT = 40
"""How many times the limit is inspected of a long string."""


def without_secrets(value: Any) -> Any:
    """The value, or a copy of it in which dictionary fields with the names of secrets are masked."""
    return _without_secrets(value, 0, [_MOST_ITEMS])


def masked_repr(value: object, limit: int) -> str:
    """The repr on one line of at most `limit` characters; never raises."""
    try:
        text = repr(without_secrets(value))
    except Exception as error:
        text = f"<{type(value).__name__}, repr() raised {type(error).__name__}>"
    cut = len(text) > limit * _LOOKED_AT
    text = clean(scrub(text[: limit * _LOOKED_AT] if cut else text))
    return text if len(text) <= limit and not cut else text[: limit - 1] + "…"


def _without_secrets(value: Any, depth: int, left: list[int]) -> Any:
    """The value itself, or a copy if a dictionary in it has a field to mask. Other objects are masked in their repr.
    Inspects at most as many items as are `left`: a structure may contain itself many times over."""
    kind: type[Any] = value.__class__
    if depth >= _DEEPEST or kind not in (dict, list, tuple):
        return value
    left[0] -= len(value)
    if left[0] < 0:
        return value
    if kind is dict:
        fields = cast("dict[Any, Any]", value)
        shown: dict[Any, Any] = {
            name: MASK
            if isinstance(name, str) and is_hidden(name, item)
            else _without_secrets(item, depth + 1, left)
            for name, item in fields.items()
        }
        return value if all(shown[name] is item for name, item in fields.items()) else shown
    items = cast("list[Any]", value)
    changed = [_without_secrets(item, depth + 1, left) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return value
    return changed if kind is list else tuple(changed)
