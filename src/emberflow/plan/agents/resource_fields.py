"""Annotated fields of resource classes: filled from the arguments of the descriptor, and checked.

    class MySetup(BaseChatModelSetup):
        host: str
        retries: int = 3

Only classes without an `__init__` of their own: those take their arguments themselves.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.copies import copied
from emberflow.plan.agents.argument_types import fits

_REQUIRED: Any = object()
_ELSEWHERE: Any = object()


def fill_declared_fields(kind: type[Any], not_fields: frozenset[str]) -> None:
    """Called for each new class: gives it an `__init__` if it declares fields."""
    declared = [
        name
        for name, hint in inspect.get_annotations(kind).items()
        if not name.startswith("_") and name not in not_fields and "ClassVar" not in str(hint)
    ]
    # pydantic's PrivateAttr(…), as Flink Agents' resources write it.
    private = {
        name: value for name, value in kind.__dict__.items() if type(value).__name__ == "ModelPrivateAttr"
    }
    if not (declared or private) or "__init__" in kind.__dict__:
        return
    above: Any = super(kind, kind).__init__
    takes_more = above is not object.__init__
    known_above = set(inspect.signature(above).parameters) if takes_more else set[str]()

    def fill(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in declared:
            given = kwargs.pop(name, _REQUIRED)
            value = _default(self.__class__, name) if given is _REQUIRED else given
            if value is _ELSEWHERE or (value is _REQUIRED and _is_ours(kind)):
                # A property, or an annotation of ours, such as that of `Tool.metadata`.
                continue
            if value is _REQUIRED:
                raise InvalidArgument(
                    f"{type(self).__name__} needs an argument {name!r}",
                    way_out=f"give it in the descriptor: ResourceDescriptor(clazz=…, {name}=…)",
                )
            value = _checked(type(self).__name__, name, value, _hints(kind).get(name))
            if name in known_above:
                # Declared again, with another default or type.
                kwargs[name] = value
            else:
                setattr(self, name, value)
        for name, attribute in private.items():
            setattr(self, name, attribute.get_default())
        if takes_more or args or kwargs:
            above(self, *args, **kwargs)

    fill.__signature__ = _signature(above if takes_more else None, declared)
    made: Any = kind
    made.__init__ = fill


def _is_ours(kind: type[Any]) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _signature(above: Callable[..., Any] | None, declared: list[str]) -> inspect.Signature:
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in declared]
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    if above is None:
        return inspect.Signature([first, *own])
    parameters = [item for item in inspect.signature(above).parameters.values() if item.name not in declared]
    parameters[0] = parameters[0].replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    rest = [item for item in parameters if item.kind is item.VAR_KEYWORD]
    return inspect.Signature([*(item for item in parameters if item not in rest), *own, *rest])


def _default(kind: type[Any], name: str) -> Any:
    found = inspect.getattr_static(kind, name, _REQUIRED)
    if isinstance(found, (property, functools.cached_property)):
        return _ELSEWHERE
    if type(found).__name__ == "FieldInfo":
        # pydantic's Field(…), as Flink Agents' resources write it.
        return _REQUIRED if found.is_required() else found.get_default(call_default_factory=True)
    return found if found is _REQUIRED else copied(found)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except Exception:
        # Names that only type checkers see.
        return {}


def _checked(owner: str, name: str, value: Any, hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Enum) and not isinstance(value, hint):
        for item in hint:
            if value in (item.value, item.name):
                return item
    validate: Any = getattr(cast("Any", hint), "model_validate", None)
    if validate is not None and isinstance(value, dict):
        return validate(value)
    if not fits(value, hint):
        shown = getattr(hint, "__name__", None) if isinstance(hint, type) else str(hint)
        raise InvalidArgument(
            f"the argument {name!r} of {owner} is {shorten(value)}", cause=f"it must be {shown}"
        )
    return value
