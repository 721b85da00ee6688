"""YAML files as nodes that know their place, for error messages with line and column.

Only plain values are accepted: no Python objects, no duplicate keys, and no more than a bounded number of values, however
often aliases repeat them. Knows nothing about agents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emberflow.errors import InvalidAgent, PackageMissing, describe_cause, shorten

MOST_BYTES = 10 * 1024 * 1024
MOST_VALUES = 100_000
"""Values of a file after its aliases have been expanded."""
DEEPEST = 100
LONGEST_NUMBER = 400
"""Characters; sexagesimal numbers take time that grows with the square of their length."""

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_AS_WRITTEN = frozenset({f"{_TAG}str", f"{_TAG}timestamp"})
"""A date is kept as it is written: `api_version: 2024-06-01` is a version."""
_HALF = re.compile("[\ud800-\udfff]")
"""Escapes can write surrogates, which have no form in UTF-8."""
_CONVERTED = frozenset({f"{_TAG}null", f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written, counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value: plain, a list of nodes, or a dictionary of nodes."""

    value: Any
    place: Place
    keys: dict[str, Place] = field(default_factory=dict[str, Place])
    """Where the keys of a dictionary are written."""

    @property
    def kind(self) -> str:
        """The type as JSON Schema names it."""
        return _KINDS[type(self.value)]

    def get(self, key: str) -> Node | None:
        """The value under the key; None if it is absent or null."""
        found: Node | None = self.value.get(key)
        return None if found is None or found.value is None else found

    def text(self, key: str) -> str:
        """The string under the key; empty if it is absent."""
        found = self.get(key)
        return "" if found is None else str(found.value)

    def items(self, key: str) -> list[Node]:
        """The list under the key; empty if it is absent."""
        found = self.get(key)
        return [] if found is None else list(found.value)

    def plain(self) -> Any:
        """The value without places."""
        if self.kind == "object":
            fields: dict[str, Node] = self.value
            return {name: item.plain() for name, item in fields.items()}
        if self.kind == "array":
            entries: list[Node] = self.value
            return [item.plain() for item in entries]
        return self.value


_KINDS: dict[type[Any], str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def wrong(place: Place, message: str, *, cause: str = "", way_out: str = "") -> InvalidAgent:
    """The error for something that is written at this place."""
    return InvalidAgent(f"{place}: {message}", cause=cause, way_out=way_out)


def read_file(path: str | os.PathLike[str]) -> Node:
    """The content of a YAML file; raises InvalidAgent, or PackageMissing without PyYAML."""
    shown = os.fspath(path)
    try:
        data = Path(shown).read_bytes()
        if len(data) > MOST_BYTES:
            raise InvalidAgent(f"{shown} has {len(data):,} bytes; a YAML file may have {MOST_BYTES:,}")
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidAgent(f"the YAML file {shown} cannot be read", cause=describe_cause(error)) from error
    return read_text(text, shown)


def read_text(text: str, file: str) -> Node:
    """The content of a YAML document; `file` is its name in error messages."""
    try:
        import yaml
    except ImportError as error:
        raise PackageMissing(
            "agents in YAML need PyYAML, which is not installed", way_out='pip install "emberflow[yaml]"'
        ) from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _malformed(error, file) from error
    except RecursionError as error:
        raise InvalidAgent(f"{file} is nested too deeply to be read") from error
    except (ValueError, OverflowError) as error:
        # Escapes of characters that do not exist, such as \\UFFFFFFFF.
        raise InvalidAgent(f"{file} is not valid YAML", cause=describe_cause(error)) from error
    if root is None:
        raise InvalidAgent(
            f"the YAML file {file} is empty", way_out="declare agents under agents:, or resources to share"
        )
    return _Conversion(file).node(root, 0)


def _malformed(error: Any, file: str) -> InvalidAgent:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem: str = getattr(error, "problem", None) or describe_cause(error)
    context: str = getattr(error, "context", None) or ""
    if mark is None:
        return InvalidAgent(f"{file} is not valid YAML", cause=problem)
    place = Place(file, mark.line + 1, mark.column + 1)
    return wrong(place, "this is not valid YAML", cause=f"{context}: {problem}" if context else problem)


class _Conversion:
    """From PyYAML's nodes, in which aliases share nodes, to a bounded tree."""

    def __init__(self, file: str) -> None:
        from yaml.constructor import SafeConstructor

        self._file = file
        constructor: Any = SafeConstructor()
        self._construct = constructor.construct_object
        self._count = 0
        self._path: set[int] = set()

    def node(self, made: Any, depth: int) -> Node:
        place = self._place(made)
        self._count += 1
        if self._count > MOST_VALUES:
            raise wrong(
                place,
                f"the file has more than {MOST_VALUES:,} values when its aliases are expanded",
                way_out="use fewer aliases (*name)",
            )
        if depth > DEEPEST:
            raise wrong(place, f"values are nested more than {DEEPEST} levels deep")
        if id(made) in self._path:
            raise wrong(place, "the value contains itself, through an alias")
        if made.id == "scalar":
            return Node(self._scalar(made, place), place)
        self._path.add(id(made))
        try:
            if made.tag != f"{_TAG}{'map' if made.id == 'mapping' else 'seq'}":
                raise self._foreign(made, place)
            if made.id == "sequence":
                return Node([self.node(item, depth + 1) for item in made.value], place)
            return self._mapping(made, place, depth)
        finally:
            self._path.discard(id(made))

    def _mapping(self, made: Any, place: Place, depth: int) -> Node:
        values: dict[str, Node] = {}
        places: dict[str, Place] = {}
        merged: list[Any] = []
        for key, value in made.value:
            at = self._place(key)
            if key.tag == _MERGE:
                merged.append(value)
                continue
            if key.id != "scalar" or not isinstance(name := self._scalar(key, at), str):
                shown = getattr(key, "value", "") if key.id == "scalar" else key.id
                raise wrong(at, f"the key {shown!r} is not a string", way_out=f'quote it: "{shown}":')
            if name in places:
                raise wrong(at, f"duplicate key {name!r}", cause=f"first at {places[name]}")
            values[name], places[name] = self.node(value, depth + 1), at
        for found in self._merged(merged, depth):
            for name, value in found.value.items():
                # What is written in the mapping itself takes precedence, then what was merged first.
                if name not in values:
                    values[name], places[name] = value, found.keys[name]
        return Node(values, place, places)

    def _merged(self, given: list[Any], depth: int) -> Iterator[Node]:
        """The mappings under `<<`."""
        for made in given:
            for one in made.value if made.id == "sequence" else [made]:
                if one.id != "mapping":
                    raise wrong(self._place(one), "<< merges mappings only", way_out="<<: *name_of_a_mapping")
                yield self.node(one, depth)

    def _scalar(self, made: Any, place: Place) -> Any:
        if made.tag in _AS_WRITTEN or made.tag == _MERGE or made.tag == f"{_TAG}value":
            if not made.value.isascii() and _HALF.search(made.value):
                raise wrong(
                    place, f"{shorten(made.value)} contains an unpaired surrogate, which cannot be stored"
                )
            return made.value
        if made.tag not in _CONVERTED:
            raise self._foreign(made, place)
        try:
            if len(made.value) > LONGEST_NUMBER:
                raise ValueError(f"it has more than {LONGEST_NUMBER} characters")
            return self._construct(made)
        except (ValueError, OverflowError, LookupError) as error:
            raise wrong(
                place,
                f"{shorten(made.value)} cannot be read",
                cause=describe_cause(error),
                way_out="quote it",
            ) from error

    @staticmethod
    def _foreign(made: Any, place: Place) -> InvalidAgent:
        tag = str(made.tag).replace(_TAG, "!!")
        return wrong(
            place,
            f"the tag {tag} is not allowed",
            cause="only plain values are read: strings, numbers, true, false, null, lists and mappings",
        )

    def _place(self, made: Any) -> Place:
        return Place(self._file, made.start_mark.line + 1, made.start_mark.column + 1)
