"""Serializers of windows, for assigners that were written for PyFlink and return one from `get_window_serializer()`.

emberflow stores windows itself and does not call them.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from emberflow.windowing.windows import CountWindow, GlobalWindow, TimeWindow


class TimeWindowSerializer:
    """Start and end, eight bytes each."""

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Writes the window."""
        stream.write(struct.pack(">qq", element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Reads a window."""
        return TimeWindow(*struct.unpack(">qq", stream.read(16)))


class CountWindowSerializer:
    """The number of the window in eight bytes."""

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Writes the window."""
        stream.write(struct.pack(">q", element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Reads a window."""
        return CountWindow(*struct.unpack(">q", stream.read(8)))


class GlobalWindowSerializer:
    """One byte."""

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        """Writes the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        """Reads a window."""
        stream.read(1)
        return GlobalWindow()
