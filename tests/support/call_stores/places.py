"""The stores under test: where each kind keeps its calls, and how any process opens it there.

Leases are shorter than usual, so that tests need not wait long for one to expire.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from emberflow.durable.stores.contract import CallStore
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.object_store import ObjectCallStore
from emberflow.durable.stores.postgres_store import PostgresCallStore

LEASE_S = 3.0
KINDS = ("files", "objects", "bucket", "postgres")
ON_DISK = ("files", "objects")
WITH_SERVER = ("bucket", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    kind: str
    address: str
    job_id: str
    settings: str = ""
    patience_s: float = 15.0

    def open(self) -> CallStore:
        match self.kind:
            case "files":
                return FileCallStore(self.folder, lease_s=LEASE_S)
            case "postgres":
                return PostgresCallStore(
                    self.address, self.job_id, lease_s=LEASE_S, patience_s=self.patience_s
                )
            case _:
                uri = f"{self.address}/{self.job_id}{self.settings}"
                return ObjectCallStore(uri, beat_s=LEASE_S / 10, lease_s=LEASE_S)

    @property
    def folder(self) -> Path:
        return Path(self.address) / self.job_id

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Place:
        return cls(**json.loads(text))


MakePlace = Callable[[str], Place]
"""An unused place of a kind."""


class Opened:
    """Stores of one place that are closed when the test ends."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._stack = ExitStack()

    def __call__(self) -> CallStore:
        store = self._place.open()
        self._stack.callback(store.close)
        return store

    def close(self) -> None:
        self._stack.close()


def read_all(store: CallStore, owner: str) -> list[bytes]:
    """The new records of one owner."""
    return [item for other, records in store.read_new() if other == owner for item in records]
