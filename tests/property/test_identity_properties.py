"""Identities of different keys differ, especially if the keys have equal 32-bit hashes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from emberflow.events.codecs import decode, encode
from emberflow.events.identity import fingerprint, identity_of
from emberflow.events.key_groups import stable_hash

FREE = 12
"""Letters at the end of a forged string; each has four bits that can be chosen."""


def forged(start: str, wanted: int, init: int = 0) -> str:
    """A string that begins with `start` and has the wanted CRC-32: the checksum is linear, so the bits of the last letters
    can be solved for."""
    base = start.encode() + b"@" * FREE
    rest = crc32(base, init) ^ wanted
    rows: list[tuple[int, int]] = []
    for number in range(4 * FREE):
        changed = bytearray(base)
        changed[-1 - number // 4] ^= 1 << number % 4
        effect, used = crc32(bytes(changed), init) ^ crc32(base, init), 1 << number
        for other_effect, other_used in rows:
            if effect ^ other_effect < effect:
                effect, used = effect ^ other_effect, used ^ other_used
        if effect:
            rows.append((effect, used))
            rows.sort(reverse=True)
    flips = 0
    for effect, used in rows:
        if rest ^ effect < rest:
            rest, flips = rest ^ effect, flips ^ used
    assert rest == 0
    made = bytearray(base)
    for number in range(4 * FREE):
        if flips >> number & 1:
            made[-1 - number // 4] ^= 1 << number % 4
    return made.decode()


texts = st.text(st.characters(codec="ascii"), max_size=12)


@given(texts, texts, st.integers(0, 2**32 - 1))
def test_strings_and_bytes_with_equal_checksums(first: str, second: str, checksum: int) -> None:
    one, other = forged(first, checksum), forged(second, checksum)
    assert stable_hash(one) == stable_hash(other) == checksum
    assert (identity_of(one) == identity_of(other)) == (one == other)
    assert (identity_of((one, 1)) == identity_of((other, 1))) == (one == other)
    assert (fingerprint([one, {"x": one}]) == fingerprint([other, {"x": other}])) == (one == other)
    raw, other_raw = (forged(start, checksum, 1).encode() for start in (first, second))
    assert stable_hash(raw) == stable_hash(other_raw)
    assert (identity_of(raw) == identity_of(other_raw)) == (raw == other_raw)


@given(st.integers(1, 2**28))
def test_numbers_with_equal_hashes(number: int) -> None:
    assert stable_hash(number) == stable_hash(number << 32)
    assert identity_of(number) != identity_of(number << 32)


numbers = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.complex_numbers(allow_nan=False),
    st.sampled_from(
        [0.0, -0.0, 0.5, Decimal("0.5"), Fraction(1, 2), 2**80, float(2**80), Decimal(2**80), 1e300]
    ),
)
keys: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), numbers, st.text(max_size=3), st.binary(max_size=3), st.dates(), st.uuids()),
    lambda inner: st.one_of(
        st.tuples(), st.tuples(inner), st.tuples(inner, inner), st.frozensets(inner, max_size=3)
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    return {one: 1}.get(other) == 1


@given(keys, keys)
def test_only_equal_keys_share_an_identity(one: Any, other: Any) -> None:
    assert (identity_of(one) == identity_of(other)) == same(one, other)
    assert len(identity_of(one)) == 32


@given(numbers, numbers)
def test_numbers_are_identified_by_their_value(one: Any, other: Any) -> None:
    assert (identity_of(one) == identity_of(other)) == same(one, other)
    assert (identity_of((one, "x")) == identity_of((other, "x"))) == same(one, other)


@given(keys)
def test_an_identity_survives_a_round_trip(key: Any) -> None:
    assert identity_of(decode(encode(key))) == identity_of(key)
