"""Exceptions as they may be stored: recorded calls and outcomes survive in the log and in savepoints, so secrets that a
message repeats, such as the key that a service refused, are masked first."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any, cast

from emberflow.errors import NotSerializable, describe_cause
from emberflow.events.codecs import encode
from emberflow.rendering.secret_names import MASK, is_hidden, scrub

_DEEPEST = 6


def storable(error: Exception, secrets: Collection[str] = ()) -> Exception:
    """The exception, or what comes closest to it, without `secrets` and without texts such as `api_key='…'`."""
    # A copy: other threads may make resources meanwhile.
    secrets = tuple(secrets)
    masked = _without_secrets(error, secrets, 0)
    try:
        data = encode(masked)
    except NotSerializable:
        return RuntimeError(mask(describe_cause(error), secrets))
    if any(secret.encode() in data for secret in secrets):
        # Somewhere inside, where it cannot be replaced: a request with its headers, say.
        return RuntimeError(mask(describe_cause(error), secrets))
    return masked


def mask(text: str, secrets: Collection[str]) -> str:
    # The longest first: one may be a part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return scrub(text)


def _without_secrets(value: Any, secrets: Collection[str], depth: int) -> Any:
    """The value itself where there is nothing to mask."""
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
            else _without_secrets(item, secrets, depth + 1)
            for name, item in fields.items()
        }
        return value if all(shown[name] is item for name, item in fields.items()) else shown
    if kind not in (list, tuple):
        return value
    items = cast("list[Any]", value)
    changed = [_without_secrets(item, secrets, depth + 1) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return value
    return changed if kind is list else tuple(changed)


def _without_secrets_in(error: BaseException, secrets: Collection[str], depth: int) -> BaseException:
    args = _without_secrets(error.args, secrets, depth + 1)
    fields = _without_secrets(error.__dict__, secrets, depth + 1)
    if args is error.args and fields is error.__dict__:
        return error
    try:
        shown = copy.copy(error)
        shown.args = args
        shown.__dict__.update(fields)
    except Exception:
        return RuntimeError(mask(describe_cause(error), secrets))
    return shown
