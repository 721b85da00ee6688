"""What a task of a micro-batch sends to the driver: the commit message that Spark collects from it."""

from __future__ import annotations

from typing import Any, NamedTuple

from emberflow.events.codecs import decode, encode


class ClientPacket(NamedTuple):
    """Records for the driver (print, collect)."""

    sink: int
    subtask: int
    packet: bytes


class TaskOutput(NamedTuple):
    prepared: dict[int, Any]
    """number of a sink -> what its writer has prepared"""
    to_client: list[ClientPacket]

    def to_bytes(self) -> bytes:
        return encode((self.prepared, [tuple(item) for item in self.to_client]))

    @staticmethod
    def from_bytes(data: bytes) -> TaskOutput:
        prepared, to_client = decode(data)
        return TaskOutput(prepared, [ClientPacket(*item) for item in to_client])
