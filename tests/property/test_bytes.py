"""Codecs and packets: every value survives a round trip, and no bytes cause harm."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.errors import CorruptData
from emberflow.events.batch import Batch
from emberflow.events.codecs import decode, encode
from emberflow.events.packets import Packet, decode_packet, encode_packet

hashable = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
)
values = st.recursive(
    hashable,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4), st.tuples(inner, inner)
    ),
    max_leaves=10,
)
longs = st.integers(-(2**63) + 2, 2**63 - 1)


@given(values)
def test_values_survive_a_round_trip(value: Any) -> None:
    assert decode(encode(value)) == value


def test_lambdas_and_local_classes_survive_a_round_trip() -> None:
    class Local:
        n = 5

    assert decode(encode(lambda x: x + 1))(1) == 2
    assert decode(encode(Local)).n == 5
    assert math.isnan(decode(encode(float("nan"))))


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_corrupt_data(data: bytes) -> None:
    for read in (decode, decode_packet):
        try:
            read(data)
        except CorruptData:
            pass


@given(st.binary(max_size=60), st.sampled_from([1, 2]))
def test_random_bytes_after_a_valid_header(data: bytes, codec: int) -> None:
    for read, header in ((decode, bytes([codec])), (decode_packet, bytes([1, codec]))):
        try:
            read(header + data)
        except CorruptData:
            pass


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    items = draw(st.lists(values, max_size=6))
    size = len(items)

    def column(element: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(st.none(), st.lists(element, min_size=size, max_size=size)))

    batch = Batch(items, column(st.one_of(st.none(), longs)), column(longs), column(hashable))
    return Packet(
        draw(st.integers(0, 9)),
        draw(st.integers(0, 9)),
        draw(st.integers(0, 2**40)),
        batch,
        draw(st.one_of(st.none(), longs)),
        draw(st.booleans()),
    )


@given(packets())
def test_packets_survive_a_round_trip(packet: Packet) -> None:
    assert decode_packet(encode_packet(packet)) == packet


@settings(max_examples=60)
@given(packets(), st.data())
def test_a_truncated_packet_is_corrupted(packet: Packet, data: st.DataObject) -> None:
    encoded = encode_packet(packet)
    size = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CorruptData):
        decode_packet(encoded[:size])


def test_the_smallest_watermarks_survive_a_round_trip() -> None:
    batch = Batch([1, 2], [None, 5], [-(2**63), 2**63 - 1], ["a", "b"])
    assert decode_packet(encode_packet(Packet(0, 0, 0, batch))).batch == batch
