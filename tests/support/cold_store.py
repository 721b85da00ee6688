"""Where a key group's buckets and pages are, in memory."""

from __future__ import annotations


class Buckets:
    """A cold store that counts how often it is read, and what is written."""

    def __init__(self, content: dict[int, bytes] | None = None) -> None:
        self.content = dict(content or {})
        self.reads = 0
        self.writes = 0
        self.written_bytes = 0

    def get(self, bucket: int) -> bytes | None:
        self.reads += 1
        return self.content.get(bucket)

    def put(self, bucket: int, data: bytes) -> None:
        self.writes += 1
        self.written_bytes += len(data)
        self.content[bucket] = data

    def remove(self, bucket: int) -> None:
        self.content.pop(bucket, None)
