"""A pydantic model's methods for resources: their fields are the arguments with which they are created.

Read from the attributes of the same names, also with a leading underscore; an argument that is kept under neither is not a
field. Secrets are masked.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Self, cast

from emberflow.errors import InvalidArgument, describe_cause, did_you_mean
from emberflow.events.model_shape import ModelShape
from emberflow.rendering.masked_repr import without_secrets
from emberflow.rendering.secret_names import MASK

_CREDENTIALS = frozenset({"auth"})
"""Arguments that are secrets, though their names do not say so."""


class ResourceShape(ModelShape):
    """Base of resources, which are plain classes with an `__init__`."""

    def _shape_fields(self) -> dict[str, Any]:
        found = {name: vars(self)[kept] for name, kept in _kept_arguments(self)}
        shown = {name: MASK if name in _CREDENTIALS and item else item for name, item in found.items()}
        return without_secrets({**shown, **_further_settings(self)})

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        names, takes_more = _arguments(cls)
        for name, value in fields.items():
            if name not in names and not takes_more:
                raise InvalidArgument(f"{cls.__name__} has no argument {name!r}{did_you_mean(name, names)}")
            if value == MASK:
                raise InvalidArgument(
                    f"the argument {name!r} of {cls.__name__} is a secret that was masked",
                    way_out=f"give it again: model_validate({{**data, {name!r}: …}})",
                )
        try:
            return cls(**fields)
        except TypeError as error:
            raise InvalidArgument(
                f"{cls.__name__} cannot be created from this", cause=describe_cause(error)
            ) from error

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some arguments replaced, which are not validated. It has the original's secrets, but no connections."""
        made = super().model_copy(deep=deep)
        context = vars(self).get("resource_context")
        if context is not None:
            vars(made)["resource_context"] = context
        kept = dict(_kept_arguments(self))
        settings = vars(made).get("settings")
        for name, value in (update or {}).items():
            if name in kept:
                vars(made)[kept[name]] = value
            elif isinstance(settings, dict) and _arguments(type(self))[1]:
                # A copy: the original has the same dictionary.
                vars(made)["settings"] = settings = {**cast("dict[str, Any]", settings), name: value}
            else:
                raise InvalidArgument(
                    f"{type(self).__name__} has no argument {name!r}{did_you_mean(name, kept)}"
                )
        return made


def _arguments(kind: type[Any]) -> tuple[list[str], bool]:
    """The names of the arguments, those passed on to base classes included, and whether there may be more."""
    names: dict[str, None] = {}
    for base in kind.__mro__:
        created: Any = base.__dict__.get("__init__")
        if created is None or base is object:
            continue
        parameters = list(inspect.signature(created).parameters.values())[1:]
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names.update(dict.fromkeys(item.name for item in parameters if item.kind in named))
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            return [*names], False
    return [*names], bool(names)


def _kept_arguments(resource: Any) -> Iterator[tuple[str, str]]:
    """Argument and attribute. Attributes are read from the object's own: a property may open a connection."""
    own: dict[str, Any] = resource.__dict__
    kind: Any = resource.__class__
    for name in _arguments(kind)[0]:
        for kept in (name, f"_{name}"):
            if kept in own:
                yield name, kept
                break


def _further_settings(resource: Any) -> dict[str, Any]:
    """Of a class with `**settings`."""
    own: dict[str, Any] = resource.__dict__
    settings: Any = own.get("settings")
    kind: Any = resource.__class__
    names, takes_more = _arguments(kind)
    if not takes_more or "settings" in names or not isinstance(settings, dict):
        return {}
    return cast("dict[str, Any]", settings)
