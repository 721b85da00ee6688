"""Decisions of micro-batches as objects of a bucket, beside a job's durable calls.

Buckets cannot be asked through pyarrow to write an object only if it is not there. So a decision is looked for before and
after it is written, and a process that finds another one gives way. Two attempts at one task that end within the same
request are not told apart; Spark makes two at once only with speculation, or after it has lost a machine.
"""

from __future__ import annotations

from emberflow.engines.call_stores.decisions import DECISIONS_FOLDER, framed, unframed
from emberflow.engines.call_stores.object_files import ObjectFiles


class ObjectDecisions:
    def __init__(self, uri: str) -> None:
        self._files = ObjectFiles(uri)

    def find(self, name: str) -> bytes | None:
        stored = self._files.get(_path(name))
        return None if stored is None else unframed(stored, f"{self._files.place}/{_path(name)}")

    def decide(self, name: str, data: bytes) -> bool:
        if self.find(name) is not None:
            return False
        self._files.put(_path(name), framed(data))
        return self.find(name) == data

    def forget(self, name: str) -> None:
        self._files.remove(_path(name))


def _path(name: str) -> str:
    return f"{DECISIONS_FOLDER}/{name}"
