"""The inputs of `from_list`: read when the program is executed, not when it is built."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from emberflow.connectors.collection import CollectionSource
from emberflow.errors import InvalidArgument, shorten


class ListedInputs(CollectionSource[tuple[Any, Any]]):
    """(key, value) pairs of a list of dictionaries. From the first read on, later changes of the list have no effect."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        super().__init__(inputs)
        self._inputs: Sequence[Any] = inputs if isinstance(inputs, list) else self._values
        del self._values
        for number, item in enumerate(self._inputs):
            # An item of another form is reported where the list is given.
            _pair(number, item)

    @functools.cached_property
    def _values(self) -> list[Any]:
        return [_pair(number, item) for number, item in enumerate(self._inputs)]

    def describe(self) -> str:
        return f"Collection of {len(self._inputs)}"

    def __getstate__(self) -> dict[str, Any]:
        return {"_values": self._values, "_inputs": self._values}


def _pair(number: int, item: object) -> tuple[Any, Any]:
    shown = shorten(item)
    found: Any = item if isinstance(item, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    for key, value in (("key", "value"), ("k", "v")):
        if value in found and set(found) <= {key, value}:
            # An unlikely key: an input without a key must not collide with another one's.
            return found.get(key, f"_input_{number}"), found[value]
    raise InvalidArgument(
        f"input {number} is {shown}",
        way_out="from_list() takes items like {'key': 'ann', 'value': 'hello'}; the key may be left out",
    )
