"""What the code of an action refers to, determined without running it.

Two results: what it *mentions* (event classes and strings anywhere in its code and in the functions it calls; an upper
bound) and what it *sends* (events constructed in a call of `send_event`; certain). `plan/agents/checks.py` reports only
what the first excludes, `plan/agents/picture.py` draws the second.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from emberflow.events.agent_events import Event

# Far more than an action calls; anything beyond could send any event.
MOST_FUNCTIONS = 300
_INSTALLED = ("site-packages", "dist-packages")
_LATER = "send_event_after"
_DECLARED = "_sends_only"

F = TypeVar("F")


@dataclass(slots=True)
class Code:
    """What was found in one action."""

    classes: dict[str, type[Event]] = field(default_factory=dict[str, type[Event]])
    """Event classes it mentions, by their full name."""
    strings: set[str] = field(default_factory=set[str])
    sends: dict[str, type[Event] | None] = field(default_factory=dict[str, "type[Event] | None"])
    """Event types it certainly sends, with their class if there is one."""
    plain_events: bool = False
    """It mentions `Event` itself: such events carry any attributes."""
    unknown: bool = False
    """It may send events that cannot be determined here."""
    later: bool = False
    """It mentions `send_event_after`."""


def full_name(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def sends_only(*classes: type[Event]) -> Callable[[F], F]:
    """Declares what an action of ours sends, so that it need not be analysed."""

    def mark(function: F) -> F:
        setattr(function, _DECLARED, classes)
        return function

    return mark


def look_into(function: Any) -> Code:
    """Analyses a function. Never raises: code that cannot be analysed may send anything."""
    code = Code()
    for kind in getattr(function, _DECLARED, ()):
        code.classes[full_name(kind)] = kind
        code.sends[kind.EVENT_TYPE] = kind
    if code.sends:
        return code
    start = _function(function)
    if start is None:
        code.unknown = True
        return code
    waiting = [start, *_more(function)]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        if len(seen) >= MOST_FUNCTIONS:
            code.unknown = True
            break
        seen.add(id(current))
        owner: Any = getattr(function, "__self__", None)
        waiting += [item for item in _look(current, owner, code) if _belongs(item, start)]
        wrapped: Any = getattr(current, "__wrapped__", None)
        if isinstance(wrapped, FunctionType):
            waiting.append(wrapped)
    return code


def sends_later(function: Any) -> bool:
    """Whether an action may send delayed events; True if it cannot be analysed."""
    return _function(function) is None or look_into(function).later


def _function(value: Any) -> FunctionType | None:
    """The Python function behind a method, a partial or a callable object."""
    if isinstance(value, functools.partial):
        return _function(value.func)
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        return value
    if isinstance(value, type):
        return None
    call: Any = inspect.getattr_static(value.__class__, "__call__", None)
    return call if isinstance(call, FunctionType) else None


def _more(function: Any) -> list[FunctionType]:
    """Functions that an object carries: the arguments of a partial, the attributes of a callable."""
    held: Iterable[Any] = ()
    if isinstance(function, functools.partial):
        held = (*function.args, *function.keywords.values())
    elif not isinstance(function, FunctionType):
        held = getattr(function, "__dict__", {}).values()
    return [item for item in map(_function, held) if item is not None]


def _belongs(function: FunctionType, start: FunctionType) -> bool:
    """Whether to analyse a called function: the user's own code, not the libraries it uses."""
    if function.__module__ == start.__module__:
        return True
    top = str(function.__module__).partition(".")[0]
    if top in sys.stdlib_module_names or top == "emberflow":
        return top == "__main__"
    installed = any(part in function.__code__.co_filename for part in _INSTALLED)
    # An installed package that uses events is part of the agent nevertheless.
    return not installed or any(_event_class(value) for value in list(function.__globals__.values()))


def _look(function: FunctionType, owner: Any, code: Code) -> list[FunctionType]:
    """Adds what one function mentions and sends; returns the functions it can reach by name."""
    names, constants = _names_and_constants(function.__code__)
    code.strings |= constants
    code.later = code.later or _LATER in names or _LATER in constants
    resolver = Names(function)
    reached: list[FunctionType] = []
    found: list[Any] = [value for name in names if (value := resolver.get(name)) is not _NOTHING]
    found += resolver.closure.values()
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if owner is not None:
        found.append(owner)
    # A module that the function imports itself is among its names.
    found += [sys.modules[name] for name in names if name in sys.modules]
    makes_events = "send_event" in names or _LATER in names
    for value in found:
        for item in (value, *_inside(value, names)):
            kind = _event_class(item)
            if kind is Event:
                code.plain_events = makes_events = True
            elif kind is not None:
                code.classes[full_name(kind)] = kind
            elif isinstance(item, str):
                code.strings.add(item)
            elif isinstance(item, FunctionType):
                reached.append(item)
    if makes_events:
        Sends(resolver, code).look(function)
    return reached


def _names_and_constants(code: CodeType) -> tuple[set[str], set[str]]:
    names = {*code.co_names, *code.co_freevars}
    constants: set[str] = set()
    for constant in code.co_consts:
        if isinstance(constant, str):
            constants.add(constant)
        elif isinstance(constant, (tuple, frozenset)):
            constants |= {item for item in _items(constant) if isinstance(item, str)}
        elif isinstance(constant, CodeType):
            inner_names, inner_constants = _names_and_constants(constant)
            names |= inner_names
            constants |= inner_constants
    return names, constants


def _inside(value: Any, names: set[str]) -> Iterator[Any]:
    """What can be reached through a value: named members, items of a container."""
    if isinstance(value, dict):
        yield from _items(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _items(value)
    elif value is not None and not isinstance(value, (str, bytes, int, float, FunctionType)):
        places: list[Any] = [value] if isinstance(value, (ModuleType, type)) else [value, value.__class__]
        for place in places:
            for name in names:
                item = inspect.getattr_static(place, name, None)
                yield getattr(item, "__func__", item)


def _items(values: Any) -> list[Any]:
    return list(values)[:1000]


def _event_class(value: Any) -> type[Event] | None:
    return value if isinstance(value, type) and issubclass(value, Event) else None


_NOTHING: Any = object()


class Names:
    """Resolves names as one function sees them."""

    def __init__(self, function: FunctionType) -> None:
        self._globals = function.__globals__
        self.closure: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                self.closure[name] = cell.cell_contents
            except ValueError:
                continue

    def get(self, name: str) -> Any:
        return self.closure[name] if name in self.closure else self._globals.get(name, _NOTHING)

    def value(self, node: ast.AST) -> Any:
        """The value of a name or `module.name`; _NOTHING if it is known only at run time."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, (ModuleType, type)):
                return inspect.getattr_static(owner, node.attr, _NOTHING)
        return _NOTHING


class Sends:
    """The calls of `send_event` in one function, read from its source."""

    def __init__(self, names: Names, code: Code) -> None:
        self._names = names
        self._code = code
        self._made: dict[str, list[ast.expr]] = {}
        self._parameters: set[str] = set()

    def look(self, function: FunctionType) -> None:
        tree = _tree(function)
        if tree is None:
            # Without source code only mentions are known; a plain event may then have any type.
            self._code.unknown = self._code.unknown or self._code.plain_events
            return
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._note(node)
        for node in nodes:
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name == "send_event" and node.args:
                    self._sent(node.args[0], 0)
                elif name == _LATER:
                    given = [item.value for item in node.keywords if item.arg == "event"] or node.args[1:2]
                    for event in given:
                        self._sent(event, 0)
                elif self._names.value(node.func) is Event and not self._types_of(node):
                    self._code.unknown = True

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._made.setdefault(target.id, []).append(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            if isinstance(node.target, ast.Name) and node.value is not None:
                self._made.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.arg):
            self._parameters.add(node.arg)

    def _sent(self, node: ast.expr, depth: int) -> None:
        if isinstance(node, ast.IfExp):
            self._sent(node.body, depth)
            self._sent(node.orelse, depth)
        elif isinstance(node, ast.Name) and node.id in self._made and depth < 5:
            for made in self._made[node.id]:
                self._sent(made, depth + 1)
        elif isinstance(node, ast.Name) and node.id in self._parameters:
            # The event that was received, or one that the caller constructed and therefore mentions.
            return
        elif isinstance(node, ast.Call):
            self._sent_call(node)
        else:
            self._code.unknown = True

    def _sent_call(self, node: ast.Call) -> None:
        made = self._names.value(node.func)
        kind = _event_class(made)
        if kind is None and isinstance(node.func, ast.Attribute):
            # Scored.from_event(…), or a class method that constructs one.
            kind = _event_class(self._names.value(node.func.value))
        if kind is Event:
            types = self._types_of(node)
            self._code.unknown = self._code.unknown or not types
            for type_name in types:
                self._code.sends.setdefault(type_name, None)
        elif kind is not None:
            self._code.sends[kind.EVENT_TYPE] = kind
        elif not isinstance(made, FunctionType):
            self._code.unknown = True

    def _types_of(self, node: ast.Call) -> list[str]:
        """The types in `Event(type="slow" if … else "quick")`; empty if one of them is known only at run time."""
        given = [item.value for item in node.keywords if item.arg == "type"] or node.args[:1]
        if not given:
            return []
        chosen = [given[0].body, given[0].orelse] if isinstance(given[0], ast.IfExp) else given[:1]
        found = [self._names.value(item) for item in chosen]
        types = [str.__str__(item) for item in found if isinstance(item, str)]
        return types if len(types) == len(found) else []


def _tree(function: FunctionType) -> ast.AST | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        # A file that has changed since would give the source of something else.
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function.__name__:
            return node
        if isinstance(node, ast.Lambda) and function.__name__ == "<lambda>":
            return node
    return None
