"""Decisions of micro-batches as objects of a bucket, next to a job's durable calls.

pyarrow cannot create an object only if it does not exist. So a decision is looked up before and after it is written, and
a process that finds another one follows it. Two attempts at one task that end within the same request cannot be told
apart; Spark runs two at once only with speculation, or after it has lost a machine.
"""

from __future__ import annotations

from emberflow.durable.decisions import DECISIONS_FOLDER, framed, unframed
from emberflow.durable.stores.object_files import ObjectFiles


class ObjectDecisions:
    def __init__(self, uri: str) -> None:
        # Next to the folder of the calls, in which every folder is the part of a process.
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
