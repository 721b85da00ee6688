"""A call log in memory that outlives the operator, like a log outlives a process."""

from __future__ import annotations

from collections.abc import Iterable

from emberflow.events.codecs import decode, encode
from emberflow.operators.agents.calls.durable_calls import CallRecord


class MemoryLog:
    def __init__(self) -> None:
        self.records: dict[str, CallRecord] = {}
        self.claims: set[str] = set()
        self.parked: set[str] = set()

    def find(self, call_id: str) -> CallRecord | None:
        return self.records.get(call_id)

    def is_empty(self) -> bool:
        return not self.records

    async def write(self, record: CallRecord) -> None:
        self.write_now(record)

    def write_first(self, record: CallRecord) -> None:
        self.write_now(record)

    def write_now(self, record: CallRecord) -> None:
        # Another process would see a copy.
        self.records[record.call_id] = decode(encode(record))

    def forget(self, call_ids: Iterable[str]) -> None:
        for call_id in call_ids:
            self.records.pop(call_id, None)

    def claim(self, action: str) -> bool:
        if action in self.claims:
            return False
        self.claims.add(action)
        return True

    def running(self, action: str) -> bool:
        return action in self.claims

    def ended(self, action: str) -> None:
        self.claims.discard(action)

    def park(self, actions: Iterable[str]) -> None:
        self.parked.update(actions)

    def done(self, action: str) -> None:
        self.parked.discard(action)

    def gave_up(self, action: str) -> None:
        pass
