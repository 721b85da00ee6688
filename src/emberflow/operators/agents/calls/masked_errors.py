"""Masks secrets in stored exceptions: recorded calls and outcomes are kept in the log and in savepoints, so secrets that a
message repeats, such as a key that a service rejected, are masked first."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, cast

from emberflow.errors import describe_cause
from emberflow.rendering.secret_names import MASK, is_hidden, scrub, shown_forms, without_values

_DEEPEST = 6


def mask(text: str, secrets: Collection[str]) -> str:
    return scrub(without_values(text, shown_forms(secrets)))


def without_secrets(value: Any, secrets: Collection[str], depth: int = 0) -> Any:
    """Returns the value itself if there is nothing to mask."""
    kind: type[Any] = value.__class__
    if kind is str:
        masked = mask(value, secrets)
        return value if masked == value else masked
    if depth >= _DEEPEST:
        return value
    if isinstance(value, BaseException):
        return _without_secrets_in(value, secrets, depth)
    if kind is dict:
        fields = cast("dict[Any, Any]", value)
        shown: dict[Any, Any] = {
            name: MASK
            if isinstance(name, str) and isinstance(item, str) and is_hidden(name, item)
            else without_secrets(item, secrets, depth + 1)
            for name, item in fields.items()
        }
        return value if all(shown[name] is item for name, item in fields.items()) else shown
    if kind not in (list, tuple):
        return value
    items = cast("list[Any]", value)
    changed = [without_secrets(item, secrets, depth + 1) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return value
    return changed if kind is list else tuple(changed)


def _without_secrets_in(error: BaseException, secrets: Collection[str], depth: int) -> BaseException:
    args = without_secrets(error.args, secrets, depth + 1)
    fields = without_secrets(error.__dict__, secrets, depth + 1)
    if args is error.args and fields is error.__dict__:
        return error
    try:
        shown = copy.copy(error)
        shown.args = args
        shown.__dict__.update(fields)
    except Exception:
        return RuntimeError(mask(describe_cause(error), secrets))
    return shown
