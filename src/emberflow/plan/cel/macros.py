"""Finds the macros of a trigger expression in its tokens: where they are, how deep, what an iteration reads.

Used by `plan/cel/evaluation_budget.py`. What is not understood is assumed to be more expensive than it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from emberflow.plan.cel.expression_text import Token

INNER, ANY = "", "*"
"""Operands that are not a value of the event: a macro's variable, and the result of another operation."""
_MACROS = ("all", "exists", "exists_one", "existsOne", "map", "filter")
_LINEAR = ("contains", "startsWith", "endsWith", "size", "matches")
_PATTERN, _FOREIGN_PATTERN = 10, 1_000
"""Steps to compile a literal regular expression, and one from the event, which may be large."""


@dataclass(slots=True)
class Macro:
    name: str
    start: int
    """The first token of the argument that is evaluated first at every iteration."""
    stop: int
    """The token after that argument."""
    end: int
    """The token after the last argument; beyond `stop` in `map(x, condition, result)`."""
    depth: int
    over: str
    """What it iterates over, as an operand."""
    steps: int = 1
    reads: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    """Operands of operations that read a whole value; of several, the smallest counts."""
    makes: tuple[str, ...] = ()
    """For `map`: what an element of the result may consist of; empty for numbers, strings and the like."""
    copies: int = 1
    """For `map`: how often an element may contain it: `[x, x]`."""
    inner: tuple[int, ...] = ()
    """For `map`: indexes of macros whose results an element may contain."""


def macros_of(tokens: list[Token], variables: frozenset[str]) -> list[Macro]:
    """All macros in order, with the cost of an iteration. `variables` are the values of the event."""
    found: list[Macro] = []
    for at, token in enumerate(tokens):
        if (
            token.text in _MACROS
            and at > 1
            and tokens[at - 1].text == "."
            and [item.text for item in tokens[at + 1 : at + 4 : 2]] == ["(", ","]
        ):
            start = at + 4
            ends = list(_argument_ends(tokens, start))
            depth = 1 + sum(macro.start <= at < macro.end for macro in found)
            over = _operand(tokens[at - 2], variables)
            found.append(Macro(token.text, start, ends[0], ends[-1], depth, over))
    for at in range(len(tokens)):
        around = [macro for macro in found if macro.start <= at < macro.end]
        if around:
            _count(max(around, key=lambda macro: macro.depth), tokens, at, variables)
    for macro in found:
        if macro.name == "map":
            _describe_result(macro, tokens, found, variables)
    return found


_SCALAR = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "!", "-", "*", "/", "%"])


def _describe_result(
    macro: Macro, tokens: list[Token], macros: list[Macro], variables: frozenset[str]
) -> None:
    start = macro.start if macro.stop == macro.end else macro.stop + 1
    part = tokens[start : macro.end]
    depth, outer = 0, set[str]()
    for token in part:
        if not depth:
            outer.add(token.text)
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
    if outer & _SCALAR and "?" not in outer:
        return
    macro.makes = tuple({_operand(token, variables) for token in part if token.kind == "name"})
    if any(token.text in ("[", "{") for token in part):
        macro.copies = 1 + sum(token.text == "," for token in part)
    macro.inner = tuple(number for number, other in enumerate(macros) if start <= other.start < macro.end)


def with_questions(text: str, tokens: list[Token], macros: list[Macro]) -> str:
    """The source with a call of the meter before what each macro evaluates at every iteration; its result may end the macro."""
    inserted: list[tuple[int, int, str]] = []
    for number, macro in enumerate(macros):
        opening, closing = f"1 / _each_({number}) == 1 && (", ")"
        if macro.name == "all":
            opening = f"_all_({number}) && ("
        elif macro.name == "exists":
            opening = f"_any_({number}) || ("
        elif macro.name == "map" and macro.stop == macro.end:
            opening, closing = f"1 / _each_({number}) == 1 ? (", ") : null"
        # Where nested macros end at the same place, the inner ones are closed first.
        inserted.append((tokens[macro.start].start, number, opening))
        inserted.append((tokens[macro.stop - 1].end, -number, closing))
    parts: list[str] = []
    at = 0
    for position, _, added in sorted(inserted):
        parts += [text[at:position], added]
        at = position
    return "".join([*parts, text[at:]])


def _argument_ends(tokens: list[Token], at: int) -> Iterator[int]:
    """Where the arguments from a token on end: at commas, and at the bracket that closes the call."""
    open_brackets = 0
    while at < len(tokens):
        text = tokens[at].text
        if not open_brackets and text in (",", ")"):
            yield at
            if text == ")":
                return
        open_brackets += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        at += 1


def _count(macro: Macro, tokens: list[Token], at: int, variables: frozenset[str]) -> None:
    """Adds what the operation at a token costs at every iteration of its macro."""
    text, before = tokens[at].text, tokens[at - 1]
    after = tokens[at + 1] if at + 1 < len(tokens) else before
    reads: list[tuple[str, ...]] = []
    if text == "in":
        reads = [_operands(variables, after)]
    elif text in ("==", "!="):
        reads = [_operands(variables, before, after)]
    elif text == "+":
        reads = [_operands(variables, before), _operands(variables, after)]
    elif text in _LINEAR and after.text == "(" and at + 2 < len(tokens):
        reads = [_operands(variables, tokens[at - 2] if before.text == "." else tokens[at + 2])]
        if text == "matches":
            macro.steps += _PATTERN if tokens[at + 2].kind == "string" else _FOREIGN_PATTERN
    macro.reads += [names for names in reads if names]


def _operands(variables: frozenset[str], *tokens: Token) -> tuple[str, ...]:
    """Names of what an operation reads; empty if one side is a literal, which is short."""
    if any(
        token.kind in ("number", "string") or token.text in ("true", "false", "null", "[", "{")
        for token in tokens
    ):
        return ()
    return tuple(_operand(token, variables) for token in tokens)


def _operand(token: Token, variables: frozenset[str]) -> str:
    if token.text in variables:
        return token.text
    return INNER if token.kind == "name" else ANY
