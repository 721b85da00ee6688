"""The form in which a state is stored: its kind, and whether its values have the timestamps of a time to live.

Stored values do not tell: a value that has a timestamp is a pair, and users store pairs too. So every scope stores the
forms of its states by name, and a program that declares another one is rejected before it reads or writes a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emberflow.errors import ProgramChanged
from emberflow.state.descriptors import StateDescriptor

_TTL = "+ttl"
_CAUSE = "values with a time to live are stored with the time they were written at"
_VALUES = frozenset({"value", "reducing"})
"""Stored alike: one value of the user's."""


def form_of(descriptor: StateDescriptor) -> str:
    """The form of a state as it is stored: `value`, `list+ttl`."""
    return descriptor.kind if descriptor.ttl is None else descriptor.kind + _TTL


class StateForms:
    """The forms that a step declares, and those of the scope it works on."""

    __slots__ = ("declared", "step", "stored")

    def __init__(self, step: str = "") -> None:
        self.step = step
        self.declared: dict[str, str] = {}
        self.stored: dict[str, str] = {}
        """The entered scope's own; what is declared is added to it."""

    def declare(self, name: str, descriptor: StateDescriptor) -> None:
        """The step uses a state; raises `ProgramChanged` if the entered scope has it in another form."""
        form = form_of(descriptor)
        if self.declared.get(name) != form:
            self.declared[name] = form
            self._check(name, form)

    def enter(self, stored: dict[str, str]) -> None:
        """Another scope is entered; raises `ProgramChanged`."""
        self.stored = stored
        for name, form in self.declared.items():
            if stored.get(name) != form:
                self._check(name, form)

    def _check(self, name: str, form: str) -> None:
        stored = self.stored.setdefault(name, form)
        if stored == form:
            return
        kind, ttl, _ = _parts(form)
        stored_kind, stored_ttl, _ = _parts(stored)
        if ttl == stored_ttl and {kind, stored_kind} <= _VALUES:
            self.stored[name] = form
            return
        raise ProgramChanged(
            f"step {self.step!r} declares the state {_shown(name)} as {_described(form)}, "
            f"but it was stored as {_described(stored)}",
            cause=_CAUSE if kind == stored_kind else "",
            way_out="declare the state as it was, or give the new one another name: it starts empty",
            committed="the stored state was not changed",
        )

    def check_unnamed(self, entries: Mapping[Any, Mapping[str, Any]], *, expires: bool) -> None:
        """For a scope of a version that did not store forms: rejects what can be told from the values. `expires` says whether
        keys of the scope are registered for the removal of expired values."""
        lives = [name for name, form in self.declared.items() if form.endswith(_TTL)]
        if expires and self.declared and not lives:
            raise self._unnamed("has no state with a time to live", "was stored with one")
        for name in lives:
            values = next((entry[name] for entry in entries.values() if name in entry), None)
            if values is not None and not _has_time(values, self.declared[name]):
                raise self._unnamed(
                    f"declares a time to live for the state {name!r}", "was stored without one"
                )

    def _unnamed(self, now: str, before: str) -> ProgramChanged:
        return ProgramChanged(
            f"step {self.step!r} {now}, but its state {before}",
            way_out="declare the states as they were, or give the changed one another name: it starts empty",
            committed="the stored state was not changed",
        )


def _parts(form: str) -> tuple[str, str, str]:
    return form.partition(_TTL)


def _described(form: str) -> str:
    kind, ttl, _ = _parts(form)
    return f"{kind} state with a time to live" if ttl else f"{kind} state without a time to live"


def _shown(name: str) -> str:
    """The user's name of a state of a window, a trigger or a broadcast stream."""
    return repr(name.partition("/")[2] if name.startswith("$") else name)


def _has_time(stored: Any, form: str) -> bool:
    kind = _parts(form)[0]
    if kind not in ("map", "list"):
        return _is_cell(stored)
    if stored.__class__ not in (dict, list):
        return True  # On pages.
    return any(map(_is_cell, stored.values() if kind == "map" else stored))


def _is_cell(value: Any) -> bool:
    return value.__class__ is tuple and len(value) == 2 and value[1].__class__ is int
