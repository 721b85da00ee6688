"""Packets: what one channel sends to one key group in one batch, as bytes.

The layout is versioned: version byte, codec byte, body. Integers are stored as one block of 64-bit numbers.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import cloudpickle

from emberflow.errors import CheckpointError, CorruptData, NotSerializable, describe_cause, shorten
from emberflow.events.batch import Batch
from emberflow.events.codecs import CLOUDPICKLE, PICKLE, find_unserializable, unpickle

VERSION = 2
_WITH_ORIGINS = 3
"""The same with one more field, for records with origins."""
MAX_RECORDS = 50_000
MAX_BYTES = 8 * 1024 * 1024
"""A packet with more records or bytes is split, so that no row grows without bound. A record is never split."""
_NO_TIMESTAMP = {1: -(2**63) + 1, 2: -(2**63), 3: -(2**63)}
"""Stored instead of None, by version. No record has the second value, which Flink uses too."""


@dataclass(frozen=True, slots=True)
class Packet:
    """Records of `channel` of `edge`, then its watermark.

    With `at_end`, the channel's tasks do not know each other's progress (file splits, DataFrame partitions): the watermark
    takes effect only after every packet of the batch, and the highest one wins.
    """

    edge: int
    channel: int
    sequence: int
    batch: Batch
    watermark: int | None = None
    at_end: bool = False


def encode_packet(packet: Packet) -> bytes:
    """Encodes a packet; raises NotSerializable with the first value that cannot be encoded."""
    batch = packet.batch
    body = (
        packet.edge,
        packet.channel,
        packet.sequence,
        list(batch.values),
        None if batch.keys is None else list(batch.keys),
        _pack_integers(batch.timestamps),
        _pack_integers(batch.watermarks),
        packet.watermark,
        packet.at_end,
    )
    version = VERSION
    if batch.origins is not None:
        version, body = _WITH_ORIGINS, (*body, list(batch.origins))
    try:
        return bytes((version, PICKLE)) + pickle.dumps(body, 5)
    except Exception:
        pass
    try:
        return bytes((version, CLOUDPICKLE)) + cloudpickle.dumps(body, 5)
    except Exception as error:
        culprit = find_unserializable(list(batch.values))
        raise NotSerializable(
            f"the value {shorten(culprit)} cannot be sent to the next step",
            cause=describe_cause(error),
            way_out="send plain data; create locks, connections and files in open() of the step that uses them",
        ) from error


def encode_cut(batch: Batch, make: Callable[[Batch, bool], Packet]) -> Iterator[tuple[Packet, bytes]]:
    """Encodes a batch as packets within the limits, in order. `make(part, is_last)` creates the packet of a part."""

    def cut(part: Batch, last: bool) -> Iterator[tuple[Packet, bytes]]:
        if len(part) <= MAX_RECORDS:
            packet = make(part, last)
            data = encode_packet(packet)
            if len(data) <= MAX_BYTES or len(part) <= 1:
                yield packet, data
                return
        middle = len(part) // 2
        yield from cut(_slice(part, 0, middle), False)
        yield from cut(_slice(part, middle, len(part)), last)

    yield from cut(batch, True)


def _slice(batch: Batch, start: int, stop: int) -> Batch:
    columns = (batch.values, batch.timestamps, batch.watermarks, batch.keys, batch.origins)
    values, timestamps, watermarks, keys, origins = (
        None if column is None else column[start:stop] for column in columns
    )
    return Batch(values or [], timestamps, watermarks, keys, origins)  # pyright: ignore[reportArgumentType]


def decode_packet(data: bytes) -> Packet:
    """Decodes a packet; raises CorruptData."""
    if len(data) < 2 or data[0] not in _NO_TIMESTAMP or data[1] not in (PICKLE, CLOUDPICKLE):
        raise CorruptData(
            f"a packet of {len(data)} bytes has an unknown version",
            way_out="run driver and workers with the same version of emberflow",
        )
    try:
        # The record of a micro-batch contains packets: the previous version may have written them.
        body = unpickle(memoryview(data)[2:])
        origins = None
        if data[0] == _WITH_ORIGINS:
            *body, origins = body
        edge, channel, sequence, values, keys, timestamps, watermarks, watermark, at_end = body
    except CheckpointError:
        raise
    except Exception as error:
        raise CorruptData(
            f"a packet of {len(data)} bytes cannot be decoded", cause=describe_cause(error)
        ) from error
    batch = Batch(
        values, _unpack_timestamps(timestamps, data[0]), _unpack_integers(watermarks), keys, origins
    )
    return Packet(edge, channel, sequence, batch, watermark, at_end)


def _pack_integers(column: Sequence[int | None] | None) -> bytes | None:
    if column is None:
        return None
    try:
        return array("q", column).tobytes()  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        missing = _NO_TIMESTAMP[VERSION]
        return array("q", [missing if item is None else item for item in column]).tobytes()


def _unpack_integers(data: bytes | None) -> list[int] | None:
    if data is None:
        return None
    column = array("q")
    column.frombytes(data)
    return column.tolist()


def _unpack_timestamps(data: bytes | None, version: int) -> list[int | None] | None:
    numbers = _unpack_integers(data)
    missing = _NO_TIMESTAMP[version]
    if numbers is not None and missing in numbers:
        return [None if item == missing else item for item in numbers]
    return numbers  # pyright: ignore[reportReturnType]
