"""Packets are split by records and by bytes; the watermark is sent with the last part only."""

from __future__ import annotations

import pytest

from emberflow.events import packets
from emberflow.events.batch import Batch
from emberflow.events.packets import Packet, decode_packet, encode_cut


def parts(batch: Batch) -> list[Packet]:
    numbers = iter(range(10_000))

    def make(part: Batch, last: bool) -> Packet:
        return Packet(1, 2, next(numbers), part, 99 if last else None)

    return [decode_packet(data) for _, data in encode_cut(batch, make)]


def together(found: list[Packet]) -> Batch:
    joined = Batch([], [], [], [], [])
    for packet in sorted(found, key=lambda item: item.sequence):
        for column in ("values", "timestamps", "watermarks", "keys", "origins"):
            getattr(joined, column).extend(getattr(packet.batch, column) or ())
    joined.origins = joined.origins or None
    return joined


@pytest.mark.parametrize(
    ("records", "size", "at_least"), [(10, 10, 1), (7, 1000, 3), (100, 1, 10), (1, 100_000, 1)]
)
def test_nothing_is_lost_and_order_is_kept(
    monkeypatch: pytest.MonkeyPatch, records: int, size: int, at_least: int
) -> None:
    monkeypatch.setattr(packets, "MAX_RECORDS", 12)
    monkeypatch.setattr(packets, "MAX_BYTES", 3000)
    # Different strings, or pickle would write them once and refer to them.
    values = [f"{i:06d}" * size for i in range(records)]
    numbers = list(range(records))
    origins = [("reader", f"{i}") if i % 3 else None for i in numbers]
    batch = Batch(values, numbers, numbers, [f"k{i}" for i in numbers], origins)
    found = parts(batch)
    assert len(found) >= at_least
    assert together(found) == batch
    assert all(len(packet.batch) <= 12 for packet in found)
    assert [packet.watermark for packet in found] == [None] * (len(found) - 1) + [99]


def test_a_watermark_alone_is_one_packet() -> None:
    (packet,) = parts(Batch([]))
    assert packet.watermark == 99


def test_times_at_the_edges_are_distinguished_from_missing_ones() -> None:
    lowest, highest = -(2**63), 2**63 - 1
    batch = Batch(list("abc"), [None, lowest + 1, highest], [lowest, lowest + 1, highest - 1], list("abc"))
    assert together(parts(batch)) == batch
