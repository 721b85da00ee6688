"""Which kind of state a step stores, as manifests and savepoints name it, and whether a changed program can continue it.

A kind is a word, such as `reduce`; that of a window step has details: `window(elements; event-time windows)`.
"""

from __future__ import annotations

PANES = "panes of "


def detailed(kind: str, *details: str) -> str:
    """A kind with details, of which the ones that begin with `PANES` are optional."""
    return f"{kind}({'; '.join(details)})"


def continues(stored: str | None, fresh: str) -> bool:
    """Whether a step can use state of the stored kind; None if nothing is stored."""
    if stored == fresh:
        return True
    if stored is None:
        return False
    kind, before = _parts(stored)
    other, now = _parts(fresh)
    if kind != other:
        return False
    # Earlier versions stored no details.
    return not before or not now or _continues(before, now)


def recorded(stored: str, fresh: str) -> str:
    """The kind to store once a step continues: panes that were stored may still be there."""
    return stored if PANES in stored else fresh


def _continues(before: list[str], now: list[str]) -> bool:
    panes = [[item for item in details if item.startswith(PANES)] for details in (before, now)]
    rest = [[item for item in details if not item.startswith(PANES)] for details in (before, now)]
    # Panes become windows, and windows are added to panes; only other panes cannot be made of them.
    return rest[0] == rest[1] and (not all(panes) or panes[0] == panes[1])


def _parts(kind: str) -> tuple[str, list[str]]:
    name, _, details = kind.partition("(")
    return name, details.removesuffix(")").split("; ") if details else []
