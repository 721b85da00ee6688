"""Stable hashes and key groups.

A key belongs to the same group in every process, on every engine and after every restart, so Python's own
seeded `hash` is never used. Keys that compare equal in Python (1, 1.0 and True) fall into one group.
"""

from __future__ import annotations

import pickle
from typing import Any
from zlib import crc32

DEFAULT_MAX_PARALLELISM = 64
_MASK = 0xFFFFFFFF
_CACHE_LIMIT = 200_000


def stable_hash(key: Any) -> int:
    """A 32-bit hash that is equal for equal keys in every process."""
    kind = type(key)
    if kind is str:
        return crc32(key.encode("utf-8", "surrogatepass"))
    if kind is int or kind is bool:
        return _mix(int(key))
    if kind is tuple:
        digest = 0x345678
        for item in key:
            digest = _mix(digest * 1000003 ^ stable_hash(item))
        return digest
    if kind is float:
        return _mix(int(key)) if key == key and abs(key) < 2**63 and key == int(key) else crc32(repr(key).encode())
    if kind is bytes:
        return crc32(key, 1)
    if key is None:
        return 0x9E3779B9
    if kind is frozenset:
        digest = len(key)
        for item in key:
            digest ^= stable_hash(item)
        return _mix(digest)
    # Any other type: its pickle is the same in every process as long as its fields are.
    return crc32(pickle.dumps(key, 4))


def _mix(number: int) -> int:
    """The finaliser of murmur3 over the number's low and high bits."""
    value = (number ^ (number >> 32)) & _MASK
    value ^= value >> 16
    value = value * 0x85EBCA6B & _MASK
    value ^= value >> 13
    value = value * 0xC2B2AE35 & _MASK
    return value ^ (value >> 16)


class KeyGroups(dict[Any, int]):
    """key -> group, remembering what it worked out: `groups[key]` costs a dictionary look-up once a key is known."""

    def __init__(self, max_parallelism: int) -> None:
        super().__init__()
        self.max_parallelism = max_parallelism

    def __missing__(self, key: Any) -> int:
        # crc32's low bits alone spread poorly over a power of two.
        group = _mix(stable_hash(key)) % self.max_parallelism
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        self[key] = group
        return group
