"""The settings of a call, checked against what the vendor's client accepts."""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Collection, Iterable
from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean, shorten

UNCHECKED_SETTINGS = (
    "correct its name; pass a setting that is new, or that only this service has, as "
    "additional_kwargs={'extra_body': {'name': value}}"
)


def checked_settings(
    settings: dict[str, Any], known: Collection[str], service: str, *, way_out: str = ""
) -> dict[str, Any]:
    """The settings without None, and with `additional_kwargs` among them. Raises InvalidArgument for an unknown name, which a
    service would silently ignore, or reject with a message of its own."""
    more: Any = settings.get("additional_kwargs") or {}
    if not isinstance(more, dict):
        raise InvalidArgument(f"additional_kwargs must be a dictionary of settings, got {shorten(more)}")
    given: dict[str, Any] = {
        name: value for name, value in settings.items() if value is not None and name != "additional_kwargs"
    }
    for name in given:
        if name not in known:
            raise InvalidArgument(
                f"{service} has no setting {name!r}{did_you_mean(name, known)}", way_out=way_out
            )
    return {**given, **more}


def model_of(settings: dict[str, Any], service: str) -> str:
    """The model of a call; raises InvalidArgument if none is given."""
    model = str(settings.get("model", ""))
    if not model:
        raise InvalidArgument(
            f"no model is specified for the call to {service}", way_out="model='…' of the setup"
        )
    return model


def setting_types(function: Callable[..., Any], names: Iterable[str]) -> dict[str, Any]:
    """The types of parameters of a client's function, as far as they are plain data; others are `Any`."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        # Names that only type checkers see.
        hints = {}
    return {name: plain_type(hints.get(name, Any)) for name in names}


def plain_type(hint: Any) -> Any:
    """What an annotation accepts: strings, numbers, lists and dictionaries, whatever they contain. A service may know more
    values than the client that is installed."""
    kinds = _kinds(hint)
    return typing.Union[(*kinds, None)] if kinds else Any


_LISTS = (list, tuple, set, collections.abc.Sequence, collections.abc.Iterable)
_TABLES = (dict, collections.abc.Mapping)


def _kinds(hint: Any) -> list[Any] | None:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        found = [_kinds(item) for item in typing.get_args(hint)]
        known = [item for item in found if item is not None]
        return [kind for item in known for kind in item] if len(known) == len(found) else None
    if origin is typing.Literal:
        return [type(item) for item in typing.get_args(hint)]
    wanted: Any = hint if origin is None else origin
    if wanted in (str, int, float, bool):
        return [wanted]
    if wanted in _LISTS:
        return [list]
    if wanted in _TABLES or typing.is_typeddict(wanted):
        return [dict]
    # What the signatures of clients have for an argument that is not given.
    no_value = wanted is type(None) or getattr(wanted, "__name__", "") in ("Omit", "NotGiven")
    return [] if no_value else None
