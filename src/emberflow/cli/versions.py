"""Compares version numbers for `emberflow doctor`.

Supports only what the package's own requirements use (`==4.3.*`, `>=`, `<` on dotted numbers), so that the core needs
no dependency for it.
"""

from __future__ import annotations

import re

Version = tuple[int, ...]


def is_within(version: str, wanted: str) -> bool:
    """Whether `version` meets every clause of `wanted`, e.g. `>=2.2,<3`; a pre-release counts as its release."""
    return all(_meets(version, clause.strip()) for clause in wanted.split(","))


def _meets(version: str, clause: str) -> bool:
    if clause.startswith("==") and clause.endswith(".*"):
        prefix = _numbers(clause[2:-2])
        return _padded(_numbers(version), len(prefix))[: len(prefix)] == prefix
    if clause.startswith(">="):
        return _compare(version, clause[2:]) >= 0
    if clause.startswith("<"):
        return _compare(version, clause[1:]) < 0
    raise ValueError(f"version clause {clause!r}: only ==X.*, >= and < are supported")


def _compare(left: str, right: str) -> int:
    a, b = _numbers(left), _numbers(right)
    length = max(len(a), len(b))
    a, b = _padded(a, length), _padded(b, length)
    return (a > b) - (a < b)


def _padded(numbers: Version, length: int) -> Version:
    return numbers + (0,) * (length - len(numbers))


def _numbers(text: str) -> Version:
    release = re.match(r"\d+(?:\.\d+)*", text.strip())
    if release is None:
        raise ValueError(f"not a version number: {text!r}")
    return tuple(int(part) for part in release.group().split("."))
