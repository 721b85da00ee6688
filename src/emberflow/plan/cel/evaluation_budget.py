"""Limits the cost of evaluating a trigger expression, counted in steps.

The CEL package evaluates in native code that cannot be interrupted, so an expression with macros (`all`, `exists`, `map`,
…) has a second form whose macros consult a `Meter` at every iteration. It is used if the sizes of an event's values allow
more steps than the budget; otherwise the expression is evaluated as written. Steps depend on the values only, never on
time, so evaluating an event again gives the same result. One step takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from emberflow.plan.cel.expression_text import Token
from emberflow.plan.cel.macros import ANY, INNER, Macro, macros_of, with_questions

DEFAULT_STEPS = 100_000
MOST_SUMS = 10
"""`+` inside macros: each may double the size of a macro's variable."""
_SOME = 200
"""Elements or characters that a native loop processes in the time of one step."""
_COPIED = 80
"""The package copies everything that `map` and `filter` have found so far at every iteration, on average half of the
result: this much of the result counts as one step."""
_FLAT = frozenset([int, float, bool, type(None)])


class Size(NamedTuple):
    length: int
    """Number of elements or characters."""
    weight: int
    """Total number of values, at every depth, that a copy consists of."""

    def or_more(self, other: Size) -> Size:
        return Size(max(self.length, other.length), max(self.weight, other.weight))

    def doubled(self, times: int) -> Size:
        return Size(self.length << times, self.weight << times)


_NONE, _SINGLE = Size(0, 0), Size(0, 1)
_TEXT = 200
"""Characters that are copied in the time of one value."""


class BudgetSpent(Exception):
    """The expression takes more steps than allowed."""


@dataclass(frozen=True, slots=True)
class Metered:
    """The macros of one expression, and its source with a call of the meter in each of them."""

    text: str
    macros: tuple[Macro, ...]
    tokens: int
    sums: int
    makes_lists: bool
    """Whether a macro's variable may be a whole value of the event: `[items].map(x, …)`."""
    known: dict[int, int] = field(default_factory=dict[int, int])

    def meter(self, values: Mapping[str, Any], budget: int) -> Meter | None:
        """The meter for these values; None if the expression cannot exceed the budget with them."""
        harmless = self._harmless(budget)
        for value in values.values():
            if value.__class__ not in _FLAT:
                harmless -= _weight(value)
                if harmless < 0:
                    return self._close_look(values, budget)
        return None

    def _harmless(self, budget: int) -> int:
        """The weight of an event's values up to which no exact computation is needed, whatever their structure."""
        if budget not in self.known:
            least, most = 0, budget
            while least < most:
                weight = (least + most + 1) // 2
                if self._worst(weight) <= budget:
                    least = weight
                else:
                    most = weight - 1
            self.known[budget] = least
        return self.known[budget]

    def _worst(self, weight: int) -> int:
        size = max(weight, self.tokens if self.makes_lists else 1) << self.sums
        total = 0
        for macro in self.macros:
            copied = {"filter": size, "map": macro.copies * size * (size if macro.makes else 1)}
            turn = macro.steps + len(macro.reads) * size + copied.get(macro.name, 0) // _COPIED
            total += turn * size**macro.depth
        return total

    def _close_look(self, values: Mapping[str, Any], budget: int) -> Meter | None:
        sizes: dict[str, Size] = {}
        longest, nested = Size(1, 1), Size(0, 0)
        for name, value in values.items():
            sizes[name], below = _sizes(value)
            longest, nested = longest.or_more(sizes[name]).or_more(below), nested.or_more(below)
        if self.makes_lists:
            longest = longest.or_more(Size(self.tokens, self.tokens))
            nested = longest
        sizes[ANY], sizes[INNER] = longest.doubled(self.sums), nested.doubled(self.sums)
        # The results of macros may be the input of others.
        for result, element in _results(self.macros, sizes):
            sizes[ANY] = sizes[ANY].or_more(Size(0, result))
            sizes[INNER] = sizes[INNER].or_more(Size(0, element))
        results = _results(self.macros, sizes)
        costs = [
            macro.steps
            + sum(min(sizes.get(name, _NONE).length for name in names) // _SOME for names in macro.reads)
            + result // _COPIED
            for macro, (result, _) in zip(self.macros, results, strict=True)
        ]
        turns = sizes[ANY].length
        bound = sum(cost * turns**macro.depth for cost, macro in zip(costs, self.macros, strict=True))
        return None if bound <= budget else Meter(costs, budget)


def _results(macros: tuple[Macro, ...], sizes: Mapping[str, Size]) -> list[tuple[int, int]]:
    """The maximum weight of each macro's result and of its elements; zero if it is only true or false."""
    found: list[tuple[int, int]] = [(0, 0)] * len(macros)
    for number in range(len(macros) - 1, -1, -1):
        macro = macros[number]
        over = sizes.get(macro.over, _NONE)
        if macro.name == "filter":
            found[number] = over.weight, 0
        elif macro.name == "map":
            parts = [sizes.get(name, _NONE).weight for name in macro.makes]
            element = macro.copies * max(1, *parts, *(found[inner][0] for inner in macro.inner), 1)
            found[number] = over.length * element, element
    return found


class Meter:
    """Counts the steps of one evaluation. It does not raise, because `exists` and `all` ignore errors: each kind of macro
    gets the answer that ends it, and the result of such an evaluation is discarded."""

    __slots__ = ("_costs", "_left")

    def __init__(self, costs: list[int], budget: int) -> None:
        self._costs = costs
        self._left = budget

    def goes_on(self, macro: int) -> bool:
        self._left -= self._costs[macro]
        return self._left >= 0

    def is_spent(self, macro: int) -> bool:
        return not self.goes_on(macro)

    def one_or_zero(self, macro: int) -> int:
        return 1 if self.goes_on(macro) else 0

    def run(self, package: Any, program: Any, values: Mapping[str, Any]) -> Any:
        context = package.Context()
        context.add_function("_all_", self.goes_on)
        context.add_function("_any_", self.is_spent)
        context.add_function("_each_", self.one_or_zero)
        for name, value in values.items():
            context.add_variable(name, value)
        try:
            return program.execute(context)
        finally:
            if self._left < 0:
                raise BudgetSpent


def metered(text: str, tokens: list[Token], variables: frozenset[str]) -> Metered | None:
    """The metered form of an expression; None without macros."""
    macros = macros_of(tokens, variables)
    if not macros:
        return None
    sums = sum(
        token.text == "+" and any(macro.start <= at < macro.end for macro in macros)
        for at, token in enumerate(tokens)
    )
    # An index is not a list: it follows something.
    makes_lists = any(
        token.text == "{" or (token.text == "[" and (at == 0 or not _ends_operand(tokens[at - 1])))
        for at, token in enumerate(tokens)
    )
    return Metered(with_questions(text, tokens, macros), tuple(macros), len(tokens), sums, makes_lists)


def _ends_operand(token: Token) -> bool:
    return (token.kind in ("name", "string") and token.text != "in") or token.text in (")", "]")


def _sizes(value: Any) -> tuple[Size, Size]:
    """The size of a value, and of the largest value inside it."""
    kind: Any = value.__class__
    if kind is str or kind is bytes:
        return Size(len(value), 1 + len(value) // _TEXT), _NONE
    if kind is not list and kind is not dict:
        return _SINGLE, _NONE
    nested, weight = _NONE, len(value)
    items: Any = value if kind is list else [*value.values(), *value]
    for item in items:
        if item.__class__ not in _FLAT:
            size, below = _sizes(item)
            nested = nested.or_more(size).or_more(below)
            weight += size.weight
    return Size(len(value), weight), nested


def _weight(value: Any) -> int:
    """An upper bound of `_sizes` as one number, computed quickly."""
    kind: Any = value.__class__
    if kind is list or kind is dict:
        total = len(value)
        for item in value if kind is list else value.values():
            inner: Any = item.__class__
            if inner is str:
                total += len(item) // _TEXT
            elif inner not in _FLAT:
                total += 1 + _weight(item)
        return total if kind is list else total + sum(len(str(key)) // _TEXT for key in value)
    return 1 + len(value) // _TEXT if kind is str or kind is bytes else 1
