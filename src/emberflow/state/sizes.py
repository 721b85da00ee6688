"""The approximate stored size of a value in bytes; fast for plain data, exact for everything else."""

from __future__ import annotations

from typing import Any

from emberflow.events.codecs import encode

FIXED_SIZE = frozenset({int, float, bool, type(None)})
_SEQUENCES = frozenset({list, tuple, set, frozenset})


def measure(value: Any) -> int:
    """The size in bytes; raises NotSerializable for a value that cannot be stored."""
    if value.__class__ in FIXED_SIZE:
        return 8
    try:
        return _walk(value)
    except RecursionError:
        # Nested too deeply, or a structure that contains itself: leave it to pickle.
        return len(encode(value))


def _walk(value: Any) -> int:
    kind: Any = value.__class__
    if kind is str or kind is bytes:
        return len(value)
    if kind in FIXED_SIZE:
        return 8
    if kind is dict:
        total = 0
        for name, item in value.items():
            total += len(name) if name.__class__ is str else _walk(name)
            kind = item.__class__
            total += 8 if kind in FIXED_SIZE else len(item) if kind is str else _walk(item)
        return total
    if kind in _SEQUENCES:
        total = 0
        for item in value:
            kind = item.__class__
            total += 8 if kind in FIXED_SIZE else len(item) if kind is str else _walk(item)
        return total
    return len(encode(value))
