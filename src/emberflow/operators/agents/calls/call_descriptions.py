"""How a durable call is recognized when its action is repeated, and how it is shown."""

from __future__ import annotations

import functools
import inspect
from itertools import zip_longest
from typing import Any, cast

from emberflow.errors import shorten
from emberflow.events.identity import fingerprint
from emberflow.rendering.secret_names import MASK, is_hidden


@functools.lru_cache(maxsize=1024)
def takes_idempotency_key(func: Any) -> bool:
    """Whether a function accepts the call's idempotency key, to pass it to a service."""
    try:
        return "idempotency_key" in inspect.signature(func).parameters
    except (TypeError, ValueError):
        return False


def _positional(func: Any) -> tuple[str, ...]:
    """The names of positional arguments."""
    given = 0
    while isinstance(func, functools.partial):
        given += len(func.args)
        func = cast("Any", func.func)
    if inspect.ismethod(func):
        given, func = given + 1, func.__func__
    return _parameters(func)[given:] if inspect.isfunction(func) else ()


@functools.lru_cache(maxsize=1024)
def _parameters(func: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(func).parameters)


def _shown(name: str, value: Any) -> str:
    return MASK if is_hidden(name, value) else shorten(value, 60)


def name_of(func: Any) -> str:
    """Where a function is defined."""
    if hasattr(func, "durable_name"):
        return func.durable_name
    inner: Any = getattr(func, "func", func)
    if not hasattr(inner, "__qualname__"):
        inner = inner.__class__
    return f"{inner.__module__}.{inner.__qualname__}"


def shown_call(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """For messages; secrets are masked by the names of their parameters."""
    names = _positional(func)[: len(args)]
    shown = [
        *(_shown(given, arg) for given, arg in zip_longest(names, args, fillvalue="")),
        *(f"{key}={_shown(key, value)}" for key, value in kwargs.items()),
    ]
    return f"{name}({', '.join(shown)})"


def digest_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Equal for equal arguments. Not a digest of their pickled bytes, which differ between equal values."""
    return fingerprint((args, kwargs))
