"""Keys of the tortured job: plain ones, and ones with equal short hashes."""

from __future__ import annotations

import random
import string
import zlib
from functools import cache
from itertools import count
from typing import Any

from emberflow.events.key_groups import stable_hash

_LETTERS = 16


def plain(number: int) -> list[Any]:
    return [f"key{index}" for index in range(number)]


def colliding(number: int, seed: int) -> list[Any]:
    """Strings with the same CRC-32, whatever precedes or follows them; numbers that are equal in their last 32 bits; and
    strings with the same hash in emberflow's own 32-bit hash."""
    chance = random.Random(f"keys {seed}")
    low = chance.randrange(1_000)
    numbers: list[Any] = [low, low + 2**32, low + 2**33]
    kinds = [same_crc(seed % 7, number), [*numbers, "plumless", "buckeroo"], [*_same_stable_hash(), *numbers]]
    found = chance.choice(kinds)
    return (found + same_crc(seed % 7, number))[:number]


def same_crc(family: int, number: int) -> list[Any]:
    """Words of lower-case letters. CRC-32 is linear: flipping certain bits of a word changes its checksum by the same bits,
    whatever the word is; a set of flips that cancel each other out gives another word with the same checksum."""
    # Whichever of its last three bits are flipped, "h" becomes a letter between "h" and "o".
    word = b"h" * _LETTERS
    nothing = zlib.crc32(bytes(_LETTERS))
    rows: list[tuple[int, int]] = []
    for bit in (8 * place + low for place in range(_LETTERS) for low in (0, 1, 2)):
        flip = 1 << bit
        rows.append((zlib.crc32(flip.to_bytes(_LETTERS, "big")) ^ nothing, flip))
    kernel: list[int] = []
    pivots: dict[int, tuple[int, int]] = {}
    for value, flips in rows:
        while value and (top := value.bit_length()) in pivots:
            other, more = pivots[top]
            value, flips = value ^ other, flips ^ more
        if value:
            pivots[value.bit_length()] = value, flips
        else:
            kernel.append(flips)
    found = [word]
    for flips in kernel:
        found += [
            bytes(a ^ b for a, b in zip(item, flips.to_bytes(_LETTERS, "big"), strict=True)) for item in found
        ]
        if len(found) > 64 + number:
            break
    chance = random.Random(f"family {family}")
    return [item.decode() for item in chance.sample(found, number)]


@cache
def _same_stable_hash() -> list[Any]:
    seen: dict[int, str] = {}
    chance = random.Random("stable hash")
    for _ in count():
        word = "".join(chance.choices(string.ascii_lowercase, k=10))
        other = seen.setdefault(stable_hash(word) & 0xFFFF_FFFF, word)
        if other != word:
            return [other, word]
    raise AssertionError
