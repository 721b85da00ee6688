"""Which arguments a resource class accepts, found out without creating a resource.

Used when a resource is created, and earlier for what a file declares.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from emberflow.errors import did_you_mean, shorten
from emberflow.plan.agents.argument_types import fits_exactly, shown_hint

_OURS = __name__.partition(".")[0]
_NOT_NEGATIVE = re.compile(r"(^|_)(timeout|retries|backoff_ms)$")


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """What is wrong with one argument."""

    name: str
    message: str
    cause: str = ""
    way_out: str = ""
    unknown: bool = False
    """The name is wrong, not the value."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The arguments that a class accepts."""

    names: tuple[str, ...]
    others: bool = False
    """Whether it accepts arguments of any other name, too."""
    own: bool = False
    """Whether code of the user's decides what happens to those."""


def accepted_by(clazz: type[Any]) -> Accepted:
    """Classes of emberflow pass the arguments that they do not name on to the class above."""
    try:
        parameters = inspect.signature(clazz).parameters.values()
    except (TypeError, ValueError):
        return Accepted((), others=True, own=True)
    if not _takes_more(parameters):
        return Accepted(_named(parameters))
    names: dict[str, None] = {}
    for kind in inspect.getmro(clazz)[:-1]:
        if "__init__" not in vars(kind):
            continue
        if not is_ours(kind):
            return Accepted(_named(parameters), others=True, own=True)
        passed = list(inspect.signature(cast("Any", kind).__init__).parameters.values())[1:]
        names |= dict.fromkeys(_named(passed))
        if not _takes_more(passed):
            return Accepted(tuple(names))
    return Accepted(tuple(names), others=True)


def unknown_argument(
    clazz: type[Any], given: Iterable[str], more: Iterable[str] = ()
) -> ArgumentProblem | None:
    """The first argument that the class does not accept; `more` are names that are accepted beside its own."""
    accepted = accepted_by(clazz)
    known = [*accepted.names, *more]
    for name in given:
        if not accepted.others and name not in known:
            return ArgumentProblem(
                name,
                f"{clazz.__name__} takes no argument {name!r}{did_you_mean(name, known)}",
                way_out=f"its arguments are {', '.join(accepted.names)}",
                unknown=True,
            )
    return None


def argument_problem(
    clazz: type[Any], given: Mapping[str, Any], more: Iterable[str] = ()
) -> ArgumentProblem | None:
    """What is wrong with the arguments, as far as that can be said without creating the resource."""
    return (
        unknown_argument(clazz, given, more)
        or unknown_choice(clazz, given)
        or _unfitting_argument(clazz, given)
        or _missing_argument(clazz, given)
    )


def _unfitting_argument(clazz: type[Any], given: Mapping[str, Any]) -> ArgumentProblem | None:
    """The first argument of a class of emberflow whose value is not of the annotated type, or a negative time."""
    seen: set[str] = set()
    for kind in filter(is_ours, inspect.getmro(clazz)):
        for name, hint in _hints(kind).items():
            if name not in given or name in seen or hint is Any:
                # A subclass that says nothing leaves it to the class above.
                continue
            seen.add(name)
            if (problem := unfitting_value(name, given[name], hint)) is not None:
                return problem
    return None


def unfitting_value(name: str, value: Any, hint: Any) -> ArgumentProblem | None:
    """What is wrong with one argument, whose annotation says exactly what it accepts."""
    if not fits_exactly(value, hint):
        shown = shorten(value)
        if isinstance(value, str) and typing.get_origin(hint) is Sequence:
            return ArgumentProblem(
                name, f"{name!r} must be a list, got {shown}", way_out=f"{name}: [{value}]"
            )
        return ArgumentProblem(name, f"{name!r} is {shown}", cause=f"it must be {shown_hint(hint)}")
    if isinstance(value, (int, float)) and value < 0 and _NOT_NEGATIVE.search(name):
        return ArgumentProblem(name, f"{name!r} is {shorten(value)}", cause="it must not be negative")
    return None


def _missing_argument(clazz: type[Any], given: Mapping[str, Any]) -> ArgumentProblem | None:
    """The first argument that the constructor needs; only for classes of emberflow, whose others are optional."""
    if accepted_by(clazz).own:
        return None
    for item in inspect.signature(clazz).parameters.values():
        needed = item.default is item.empty and item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        if needed and item.name not in given:
            return ArgumentProblem(item.name, f"{clazz.__name__} needs an argument {item.name!r}")
    return None


def unknown_choice(clazz: type[Any], given: Mapping[str, Any]) -> ArgumentProblem | None:
    """The first string that is not among the choices of an argument, for classes of emberflow, where it names one."""
    for kind in filter(is_ours, inspect.getmro(clazz)):
        for name, hint in _hints(kind).items():
            value: Any = given.get(name)
            choices = next((item for item in (hint, *typing.get_args(hint)) if _is_enum(item)), None)
            if choices is None or not isinstance(value, str):
                continue
            try:
                choices(value)
            except ValueError:
                known = [str(item.value) for item in choices]
                return ArgumentProblem(
                    name,
                    f"{name!r} cannot be {shorten(value)}{did_you_mean(value, known)}",
                    cause=f"it is one of {', '.join(known)}",
                )
    return None


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def _hints(kind: type[Any]) -> dict[str, Any]:
    if "__init__" not in vars(kind):
        return {}
    try:
        return typing.get_type_hints(cast("Any", kind).__init__)
    except NameError:
        # Names that only type checkers see.
        return {}


def is_ours(kind: type[Any]) -> bool:
    """Whether a class is part of emberflow."""
    return kind.__module__.partition(".")[0] == _OURS


def _takes_more(parameters: Iterable[inspect.Parameter]) -> bool:
    return any(item.kind is item.VAR_KEYWORD for item in parameters)


def _named(parameters: Iterable[inspect.Parameter]) -> tuple[str, ...]:
    return tuple(
        item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
    )
