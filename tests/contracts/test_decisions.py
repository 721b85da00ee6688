"""The contract of every store of micro-batches' decisions, with real servers (A13, A15)."""

from __future__ import annotations

import threading

import pytest

from emberflow.durable.decisions import DecisionStore, FileDecisions
from emberflow.durable.stores.object_decisions import ObjectDecisions
from emberflow.durable.stores.postgres_decisions import PostgresDecisions
from tests.support.call_stores.places import KINDS, Opened, Place

everywhere = pytest.mark.parametrize("place", KINDS, indirect=True)
# Buckets cannot create an object only once: `object_decisions.py`.
where_one_wins = pytest.mark.parametrize("place", ["files", "postgres"], indirect=True)


def decisions_at(place: Place) -> DecisionStore:
    match place.kind:
        case "files":
            return FileDecisions(place.folder)
        case "postgres":
            return PostgresDecisions(place.address, place.job_id)
        case _:
            return ObjectDecisions(f"{place.address}/{place.job_id}{place.settings}")


@everywhere
def test_the_first_one_wins(place: Place) -> None:
    one, other = decisions_at(place), decisions_at(place)
    assert one.find("query.7.1.0") is None

    assert one.decide("query.7.1.0", b"first" * 100_000)
    assert not other.decide("query.7.1.0", b"second")

    assert one.find("query.7.1.0") == other.find("query.7.1.0") == b"first" * 100_000
    assert other.find("query.7.1.1") is None


@everywhere
def test_a_forgotten_one_is_gone(place: Place) -> None:
    store = decisions_at(place)
    store.decide("query.7.1.0", b"first")
    store.forget("query.7.1.0")
    store.forget("query.6.1.0")

    assert store.find("query.7.1.0") is None
    assert store.decide("query.7.1.0", b"anew")


@where_one_wins
def test_of_many_concurrent_ones_one_wins(place: Place) -> None:
    stores = [decisions_at(place) for _ in range(8)]
    won: list[int] = []
    together = threading.Barrier(len(stores))

    def decide(number: int) -> None:
        together.wait()
        if stores[number].decide("query.0.1.0", b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(won) == 1
    assert stores[0].find("query.0.1.0") == b"%d" % won[0]


@everywhere
def test_calls_and_decisions_do_not_interfere(place: Place, opened: Opened) -> None:
    store, calls = decisions_at(place), opened()
    store.decide("query.0.1.0", b"decided")
    calls.append([b"a call"], sync=True)
    other = opened()

    assert other.owners() == [calls.owner]
    for owner in other.owners():
        other.remove(owner)
    assert store.find("query.0.1.0") == b"decided"
