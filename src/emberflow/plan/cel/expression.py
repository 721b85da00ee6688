"""Trigger expressions in CEL: `@action("type == 'Scored' && score > 5")`.

An expression can use `type`, `id`, `attributes`, every attribute by its own name, and `EventType.InputEvent` and the like.
Parsed when a plan is checked, evaluated by `operators/agents/agent_operator.py` for every event. Only the values that an
expression names are passed to the CEL package, so other attributes cost nothing and need not be readable.
"""

from __future__ import annotations

import difflib
import importlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from emberflow.errors import InvalidAgent, PackageMissing, describe_cause, shorten
from emberflow.events.agent_events import Event
from emberflow.plan.cel import expression_text
from emberflow.plan.cel.cel_values import MISSING, NotReadable, member, plain
from emberflow.plan.cel.evaluation_budget import DEFAULT_STEPS, MOST_SUMS, BudgetSpent, Metered, metered


class ConditionFailed(Exception):
    """An expression could not be evaluated for an event; an option of the agent decides what happens then."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Where a variable of the compiled expression comes from."""

    variable: str
    path: tuple[str, ...]
    """Names starting at the event's attributes; empty for fields of the event itself."""
    source: str
    """`type`, `id`, `attributes` or `EventType` as a whole, `path`, or `has`."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: Any
    lookups: tuple[_Lookup, ...]
    types: frozenset[str] | None
    names: frozenset[str]
    metered: Metered | None
    """Set for an expression with macros."""
    counting: Any
    """The program that consults a meter; None without macros."""


class CelExpression:
    """One expression; `where` is used in errors. Pickled as its source and compiled again on arrival.

    `max_steps` limits an evaluation (`plan/cel/evaluation_budget.py`); exceeding it is a failure like any other."""

    def __init__(self, text: str, where: str, max_steps: int = DEFAULT_STEPS) -> None:
        self.text = text
        self.where = where
        self.max_steps = max_steps
        self._compiled: _Compiled | None = _compile(text, where)

    def matches(self, event: Event) -> bool:
        """Whether the event meets the condition; raises ConditionFailed."""
        compiled = self._compiled or self._prepare()
        # Most expressions begin with the type; events of other types need no evaluation.
        if compiled.types is not None and event.type not in compiled.types:
            return False
        values: dict[str, Any] = {}
        try:
            attributes = event.attributes
            for lookup in compiled.lookups:
                value = _value(lookup, event, attributes)
                if value is not MISSING:
                    values[lookup.variable] = value
            metered = compiled.metered
            meter = None if metered is None else metered.meter(values, self.max_steps)
            if meter is None:
                result = compiled.program.execute(values)
            else:
                result = meter.run(_package(), compiled.counting, values)
        except BudgetSpent:
            raise ConditionFailed(
                f"{shorten(self.text)} takes more than {self.max_steps:,} steps; "
                f"the option 'action.trigger-condition.max-steps' sets the limit"
            ) from None
        except Exception as error:
            raise ConditionFailed(_reason(self.text, error, compiled, values)) from error
        if result is True or result is False:
            return result
        raise ConditionFailed(
            f"{self.text!r} returned {shorten(result, 60)}, which is neither true nor false"
        )

    def names(self) -> frozenset[str]:
        """The attributes the expression uses."""
        return (self._compiled or self._prepare()).names

    def types(self) -> frozenset[str] | None:
        """The event types it can match, if it restricts them; None if it may match any."""
        return (self._compiled or self._prepare()).types

    def _prepare(self) -> _Compiled:
        self._compiled = _compile(self.text, self.where)
        return self._compiled

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "where": self.where, "max_steps": self.max_steps, "_compiled": None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CelExpression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"CelExpression({self.text!r})"


def _value(lookup: _Lookup, event: Event, attributes: dict[str, Any]) -> Any:
    if lookup.source == "type":
        return event.type
    if lookup.source == "path" or lookup.source == "has":
        value: Any = attributes
        names = lookup.path if lookup.source == "path" else lookup.path[:-1]
        for name in names:
            value = member(value, name)
            if value is MISSING:
                return MISSING
        return plain(value) if lookup.source == "path" else member(value, lookup.path[-1]) is not MISSING
    if lookup.source == "id":
        return event.id
    return plain(attributes) if lookup.source == "attributes" else expression_text.EVENT_TYPES


def _package() -> Any:
    try:
        return importlib.import_module("cel")
    except ImportError as error:
        raise PackageMissing(
            "trigger expressions are evaluated with common-expression-language, which is not installed",
            cause=describe_cause(error),
            way_out="pip install 'emberflow[cel]', or give @action an event class or a function of the event",
        ) from error


def _compile(text: str, where: str) -> _Compiled:
    package = _package()
    tokens = expression_text.tokens_of(text)
    problem = expression_text.too_large(tokens)
    if problem:
        raise InvalidAgent(
            f"{where}: the expression {shorten(text)} is too large",
            cause=problem,
            way_out="use a function of the event as the trigger",
        )
    program = _parsed(package, text, where)
    for path in expression_text.paths_of(tokens):
        _check_event_type(path, text, where)
    rewritten, lookups = _rewritten(text, tokens)
    source = text
    if rewritten != text:
        try:
            program = package.compile(rewritten)
            source = rewritten
        except ValueError:
            # Unexpected; the original source means the same and is only slower.
            lookups = []
    for function in program.functions():
        if _is_unknown(package, function):
            raise InvalidAgent(
                f"{where}: the expression {text!r} calls {function}(), which CEL does not have"
            )
    made = {lookup.variable for lookup in lookups}
    lookups += [_by_name(name) for name in program.variables() if name not in made]
    variables = frozenset(lookup.variable for lookup in lookups)
    counted = metered(source, expression_text.tokens_of(source), variables)
    if counted is not None and counted.sums > MOST_SUMS:
        raise InvalidAgent(
            f"{where}: the expression {shorten(text)} is too large",
            cause=f"it has {counted.sums} additions inside macros; at most {MOST_SUMS} are allowed",
            way_out="use a function of the event as the trigger",
        )
    return _Compiled(
        program,
        tuple(lookups),
        expression_text.types_of(tokens),
        frozenset(expression_text.attributes_of(tokens)),
        counted,
        None if counted is None else package.compile(counted.text),
    )


def _rewritten(text: str, tokens: list[expression_text.Token]) -> tuple[str, list[_Lookup]]:
    """The source with one variable for every path: passing a plain value is much faster than passing a map."""
    lookups: dict[tuple[tuple[str, ...], str], _Lookup] = {}
    parts: list[str] = []
    at = 0
    for path in expression_text.paths_of(tokens):
        root, rest = path.names[0], path.names[1:]
        if root == "EventType" and len(rest) == 1 and not path.asked:
            replaced = json.dumps(expression_text.EVENT_TYPES[rest[0]])
        elif root in expression_text.ROOTS and (root != "attributes" or not rest):
            continue
        else:
            key = (rest if root == "attributes" else path.names, "has" if path.asked else "path")
            lookup = lookups.setdefault(key, _Lookup(f"_path{len(lookups)}_", *key))
            replaced = lookup.variable
        parts += [text[at : path.start], replaced]
        at = path.end
    return "".join([*parts, text[at:]]), list(lookups.values())


def _by_name(name: str) -> _Lookup:
    # A name may have a leading dot.
    bare = name.lstrip(".")
    return _Lookup(name, (), bare) if bare in expression_text.ROOTS else _Lookup(name, (bare,), "path")


def _check_event_type(path: expression_text.Path, text: str, where: str) -> None:
    if (
        path.names[0] == "EventType"
        and len(path.names) == 2
        and path.names[1] not in expression_text.EVENT_TYPES
    ):
        near = difflib.get_close_matches(path.names[1], expression_text.EVENT_TYPES, 1)
        raise InvalidAgent(
            f"{where}: the expression {text!r} uses EventType.{path.names[1]}, which does not exist",
            cause=f"the event types are {', '.join(expression_text.EVENT_TYPES)}",
            way_out=f"did you mean EventType.{near[0]}?"
            if near
            else f"write the type of your own event as a string: type == '{path.names[1]}'",
        )


_POSITION = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


def _parsed(package: Any, text: str, where: str) -> Any:
    try:
        return package.compile(text)
    except Exception as error:
        found = _POSITION.search(str(error))
        if not found:
            raise InvalidAgent(
                f"{where}: {text!r} is not a valid expression", cause=describe_cause(error)[:300]
            ) from error
        line, column = int(found[1]), int(found[2])
        complaint = found[3].removeprefix("Syntax error: ").split(" expecting {")[0].replace("<EOF>", "end")
        shown = text.splitlines()[line - 1] if 0 < line <= len(text.splitlines()) else text
        raise InvalidAgent(
            f"{where}: {text!r} is not a valid expression",
            cause=f"{complaint[:200]}, at column {column}\n    {shown}\n    {' ' * (column - 1)}^",
            way_out='expressions are CEL, such as "score > 5" or "type == \'Scored\' && score > 5"',
        ) from error


_PROBES = (
    "'a'",
    "1",
    "1u",
    "1.5",
    "true",
    "null",
    "[1]",
    "{'a': 1}",
    "b'a'",
    "timestamp('2024-01-01T00:00:00Z')",
    "duration('1s')",
)


@lru_cache(maxsize=256)
def _is_unknown(package: Any, function: str) -> bool:
    """Tries the package itself, with values of every type: newer versions have more functions than any list here."""
    if not function.isidentifier() or function.startswith("_"):
        return False
    calls = [f"{function}()"]
    for value in _PROBES:
        calls += [f"{function}({value})", f"{value}.{function}()", f"{value}.{function}({value})"]
        calls += [f"{function}({value}, {value})", f"{value}.{function}({value}, {value})"]
    return all(_is_undefined(package, call, function) for call in calls)


def _is_undefined(package: Any, call: str, function: str) -> bool:
    try:
        package.compile(call).execute({})
    except Exception as error:
        return f"Undefined variable or function: '{function}'" in str(error)
    return False


_UNDEFINED = re.compile(r"Undefined variable or function: '([\w.]+)'")


def _reason(text: str, error: Exception, compiled: _Compiled, values: dict[str, Any]) -> str:
    shown = shorten(text)
    lookups = {lookup.variable: lookup for lookup in compiled.lookups}
    if isinstance(error, NotReadable):
        return f"{shown} cannot read {error}"
    found = _UNDEFINED.search(str(error))
    if found:
        lookup = lookups.get(found[1])
        return f"{shown}: the event has no attribute {('.'.join(lookup.path) if lookup else found[1])!r}"
    if isinstance(error, KeyError):
        return f"{shown}: there is no {error}"
    if isinstance(error, TypeError):
        kinds = [
            f"{'.'.join(lookups[name].path) or name} is {shorten(value, 40)}"
            for name, value in values.items()
            if lookups[name].source == "path"
        ]
        return f"{shown}: the types do not match" + (f"; {', '.join(kinds)}" if kinds else "")
    return f"{shown}: {shorten(describe_cause(error), 120)}"
