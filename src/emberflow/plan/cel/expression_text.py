"""Analyses the source of a trigger expression: which attributes it uses, which event types it can match.

The CEL package parses and evaluates but exposes no syntax tree, so `plan/cel/expression.py` reads the tokens here. Every
result is conservative: what is not understood is left to the package.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from emberflow.events.agent_events import EventType

# The parser recurses in native code: deeper or longer expressions would crash a thread with a small stack.
MOST_TOKENS = 500
DEEPEST = 30

ROOTS = ("type", "id", "attributes", "EventType")
TYPE_NAMES = frozenset(
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "timestamp", "duration"]
)
EVENT_TYPES: dict[str, str] = {
    name: value for name, value in vars(EventType).items() if not name.startswith("_")
}

_MACROS = ("all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap")
_WORDS = ("true", "false", "null", "in")
_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<string>(?:[rR][bB]?|[bB][rR])(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*')
        |[bB]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Path:
    """`input.user.age`, from `start` to `end` in the source; `asked` if it is inside `has(…)`."""

    names: tuple[str, ...]
    start: int
    end: int
    asked: bool = False


def tokens_of(text: str) -> list[Token]:
    found = (Token(str(item.lastgroup), item.group(), item.start()) for item in _TOKEN.finditer(text))
    return [item for item in found if item.kind != "skip"]


def too_large(tokens: list[Token]) -> str:
    """Why an expression is rejected before it is parsed; empty if it is not."""
    if len(tokens) > MOST_TOKENS:
        return f"it has {len(tokens)} parts; at most {MOST_TOKENS} are allowed"
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth > DEEPEST:
            return f"it is nested deeper than {DEEPEST} brackets"
    return ""


def bound_names(tokens: list[Token]) -> set[str]:
    """The variables of macros: `x` in `items.all(x, x > 1)`."""
    bound: set[str] = set()
    for index, token in enumerate(tokens):
        if token.text in _MACROS and _text(tokens, index - 1) == "." and _text(tokens, index + 1) == "(":
            at = index + 2
            while at < len(tokens) and tokens[at].kind == "name" and _text(tokens, at + 1) == ",":
                bound.add(tokens[at].text)
                at += 2
    return bound


def paths_of(tokens: list[Token]) -> list[Path]:
    """Every chain of names that starts at the event; chains that start at a macro's variable are excluded."""
    bound = bound_names(tokens)
    found: list[Path] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        names, after = _chain(tokens, index)
        starts = token.kind == "name" and token.text not in _WORDS and _text(tokens, index - 1) != "."
        if starts and names and names[0] not in bound and not _is_type(names):
            asked = (
                len(names) > 1
                and _text(tokens, index - 1) == "("
                and _text(tokens, index - 2) == "has"
                and _text(tokens, index - 3) != "."
                and _text(tokens, after) == ")"
            )
            # `has(…)` is treated as a unit: its result is a value too.
            first, last = (tokens[index - 2], tokens[after]) if asked else (token, tokens[after - 1])
            found.append(Path(tuple(names), first.start, last.end, asked))
        index = max(after, index + 1)
    return found


def attributes_of(tokens: list[Token]) -> set[str]:
    """The attributes an expression reads: `score`, `attributes.score` and `attributes["score"]`."""
    used: set[str] = set()
    for path in paths_of(tokens):
        if path.names[0] not in ROOTS:
            used.add(path.names[0])
        elif path.names[0] == "attributes" and len(path.names) > 1:
            used.add(path.names[1])
    for index, token in enumerate(tokens):
        if token.text == "attributes" and _text(tokens, index - 1) != "." and _text(tokens, index + 1) == "[":
            name = _string(tokens, index + 2)
            if name is not None and _text(tokens, index + 3) == "]":
                used.add(name)
    return used


def types_of(tokens: list[Token]) -> frozenset[str] | None:
    """The event types an expression can match, if it restricts them: `type == 'Scored' && …`; None for any."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and token.text in ("||", "?"):
            return None
        if depth == 0 and token.text == "&&":
            parts.append([])
        else:
            parts[-1].append(token)
    possible: frozenset[str] | None = None
    for part in parts:
        said = _types_in(part)
        if said is not None:
            possible = said if possible is None else possible & said
    return possible


def _types_in(part: list[Token]) -> frozenset[str] | None:
    """Recognizes `type == T`, `T == type` or `type in [T, …]`, and nothing else."""
    texts = [token.text for token in part]
    if texts[:2] == ["type", "=="]:
        return _one(part[2:])
    if texts[-2:] == ["==", "type"]:
        return _one(part[:-2])
    if texts[:3] == ["type", "in", "["] and texts[-1] == "]":
        items: list[list[Token]] = [[]]
        for token in part[3:-1]:
            if token.text == ",":
                items.append([])
            else:
                items[-1].append(token)
        said = [_one(item) for item in items]
        return None if None in said else frozenset[str]().union(*(item for item in said if item))
    return None


def _one(part: list[Token]) -> frozenset[str] | None:
    if len(part) == 1:
        value = _string(part, 0)
        return None if value is None else frozenset([value])
    names, after = _chain(part, 0)
    if names[:1] == ["EventType"] and len(names) == 2 and after == len(part) and names[1] in EVENT_TYPES:
        return frozenset([EVENT_TYPES[names[1]]])
    return None


def _chain(tokens: list[Token], index: int) -> tuple[list[str], int]:
    """`a.b.c` from `index` on, and where it ends. A method name, as in `a.size()`, is not part of it."""
    names: list[str] = []
    at = index
    while at < len(tokens) and tokens[at].kind == "name":
        if _text(tokens, at + 1) in ("(", "{"):
            break
        names.append(tokens[at].text)
        index = at + 1
        if _text(tokens, index) != ".":
            break
        at = index + 1
    return names, index


def _is_type(names: list[str]) -> bool:
    return len(names) == 1 and names[0] in TYPE_NAMES


def _text(tokens: list[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _string(tokens: list[Token], index: int) -> str | None:
    """A plain string; one with a prefix or an escape is left to the package."""
    text = _text(tokens, index)
    if text[:1] in ("'", '"') and "\\" not in text and index < len(tokens) and tokens[index].kind == "string":
        return str(ast.literal_eval(text))
    return None
