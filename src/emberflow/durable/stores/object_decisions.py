"""Decisions of micro-batches as objects of a bucket, beside a job's durable calls.

Buckets cannot be asked through pyarrow to write an object only if it is not there. So a decision is looked for before and
after it is written, and a process that finds another one gives way. Two attempts at one task that end within the same
request are not told apart; Spark makes two at once only with speculation, or after it has lost a machine.
"""

from __future__ import annotations

from emberflow.durable.decisions import DECISIONS_FOLDER, framed, unframed
from emberflow.durable.stores.object_files import ObjectFiles


class ObjectDecisions:
    def __init__(self, uri: str) -> None:
        # Beside the folder of the calls: in it, every folder is the part of a process.
        place, question, settings = uri.partition("?")
        self._files = ObjectFiles(f"{place}-{DECISIONS_FOLDER}{question}{settings}")

    def find(self, name: str) -> bytes | None:
        stored = self._files.get(name)
        return None if stored is None else unframed(stored, f"{self._files.place}/{name}")

    def decide(self, name: str, data: bytes) -> bool:
        if self.find(name) is not None:
            return False
        self._files.put(name, framed(data))
        return self.find(name) == data

    def forget(self, name: str) -> None:
        self._files.remove(name)
