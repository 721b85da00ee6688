"""Any order of appends, replacements, reads, ends and removals, on every kind of store, against lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from emberflow.durable.stores.contract import CallStore
from tests.support.call_stores.places import KINDS, MakePlace, Place

EXAMPLES = {"files": 40, "objects": 30, "bucket": 8, "postgres": 20}


@dataclass
class Part:
    """What an owner has done: all records in the order of its calls, and which of them count now."""

    store: CallStore
    history: list[bytes] = field(default_factory=list[bytes])
    synced: list[bytes] = field(default_factory=list[bytes])
    unsynced: list[bytes] = field(default_factory=list[bytes])
    began: bool = False

    def settle(self) -> None:
        self.synced += self.unsynced
        self.unsynced = []


@dataclass
class Reader:
    store: CallStore
    seen: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])


class Stores(RuleBasedStateMachine):
    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.parts = [Part(place.open()) for _ in range(2)]
        self.ended: list[Part] = []
        self.reader = Reader(place.open())
        self.count = 0

    def records(self, count: int) -> list[bytes]:
        self.count += count
        return [b"%d" % number for number in range(self.count - count, self.count)]

    @rule(who=st.integers(0, 1), count=st.integers(0, 4), sync=st.booleans())
    def append(self, who: int, count: int, sync: bool) -> None:
        part = self.parts[who]
        records = self.records(count)
        part.store.append(records, sync=sync)
        part.history += records
        part.unsynced += records
        part.began |= bool(records)
        if sync:
            part.settle()

    @rule(who=st.integers(0, 1), keep=st.sets(st.integers(0, 9)), new=st.integers(0, 2))
    def replace(self, who: int, keep: set[int], new: int) -> None:
        part = self.parts[who]
        part.settle()
        kept = [item for index, item in enumerate(part.synced) if index in keep]
        records = kept + self.records(new)
        part.store.replace(records)
        part.history += records
        part.synced = records

    @rule()
    def read(self) -> None:
        self.check(self.reader)

    @rule()
    def read_from_the_beginning(self) -> None:
        fresh = Reader(self.place.open())
        self.check(fresh)
        for part in [*self.parts, *self.ended]:
            seen = fresh.seen.get(part.store.owner, [])
            assert seen[: len(part.synced)] == part.synced
            assert seen[len(part.synced) :] == part.unsynced[: len(seen) - len(part.synced)]
        fresh.store.close()

    @rule(who=st.integers(0, 1))
    def end(self, who: int) -> None:
        part = self.parts[who]
        part.store.close()
        part.settle()
        # The result of a recent look at all owners may be reused once.
        alive = [self.reader.store.alive(part.store.owner) for _ in range(2)]
        assert not alive[-1]
        self.ended.append(part)
        self.parts[who] = Part(self.place.open())

    @precondition(lambda self: self.ended)
    @rule(which=st.integers(0, 9), again=st.booleans())
    def remove(self, which: int, again: bool) -> None:
        part = self.ended.pop(which % len(self.ended))
        for _ in range(1 + again):
            self.reader.store.remove(part.store.owner)
        assert part.store.owner not in self.reader.store.owners()

    def check(self, reader: Reader) -> None:
        parts = {part.store.owner: part for part in [*self.parts, *self.ended]}
        for owner, records in reader.store.read_new():
            part = parts[owner]
            assert in_order(records, part.history)
            reader.seen.setdefault(owner, []).extend(records)
            # Only what a replacement has moved may be returned again.
            assert Counter(reader.seen[owner]) <= Counter(part.history)
        for owner, part in parts.items():
            assert set(part.synced) <= set(reader.seen.get(owner, []))

    def teardown(self) -> None:
        self.check(self.reader)
        for store in [*(part.store for part in self.parts), self.reader.store]:
            store.close()


def in_order(records: Sequence[bytes], history: Iterable[bytes]) -> bool:
    rest = iter(history)
    return all(item in rest for item in records)


@pytest.mark.parametrize("kind", KINDS)
def test_any_interleaving_matches_the_model(kind: str, place_of: MakePlace) -> None:
    run_state_machine_as_test(
        lambda: Stores(place_of(kind)),  # pyright: ignore[reportArgumentType]
        settings=settings(
            max_examples=EXAMPLES[kind],
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
        ),
    )
