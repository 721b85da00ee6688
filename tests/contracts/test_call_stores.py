"""The contract of every store of durable calls, on every kind of store, with real processes and real servers (A15)."""

from __future__ import annotations

import random
import signal

import pytest

from tests.support.call_stores.appender import GROUP, HANDED_ON, record, replacement
from tests.support.call_stores.children import appender
from tests.support.call_stores.places import KINDS, Opened, Place, read_all
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("place", KINDS, indirect=True)

# Enough repetitions to find every reader that misses something, and some more.
READS = {"files": 3_000, "objects": 100, "bucket": 30, "postgres": 30}


def elsewhere(place: Place, owner: str) -> None:
    """The process seems to run on another machine; only the file store can tell the difference."""
    if place.kind == "files":
        (place.folder / f"{owner}.lease").write_bytes(b"another machine")


class TestRecords:
    def test_are_returned_in_order_and_once(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        writer.append([b"1", b"2"], sync=True)
        first = read_all(reader, writer.owner)
        writer.append([b"3"], sync=True)
        writer.append([b"", b"4" * 100_000], sync=True)

        assert first == [b"1", b"2"]
        assert read_all(reader, writer.owner) == [b"3", b"", b"4" * 100_000]
        assert reader.read_new() == []

    def test_are_read_by_every_other_owner_but_not_by_their_own(self, opened: Opened) -> None:
        stores = [opened() for _ in range(3)]
        for store in stores:
            store.append([store.owner.encode()], sync=True)

        for store in stores:
            others = sorted(other.owner for other in stores if other is not store)
            assert sorted(store.read_new()) == [(owner, [owner.encode()]) for owner in others]
            assert store.owners() == others

    def test_unsynced_ones_become_visible_soon_and_in_order(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        seen: list[bytes] = []

        def all_there() -> bool:
            seen.extend(read_all(reader, writer.owner))
            return len(seen) >= 3

        writer.append([b"1"], sync=False)
        writer.append([b"2", b"3"], sync=False)
        until(all_there)
        writer.append([b"4"], sync=False)
        writer.append([b"5"], sync=True)

        assert seen + read_all(reader, writer.owner) == [b"1", b"2", b"3", b"4", b"5"]

    def test_unsynced_ones_exist_after_a_close(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        writer.append([b"1"], sync=False)
        writer.close()

        assert read_all(reader, writer.owner) == [b"1"]

    def test_of_two_jobs_are_separate(self, opened: Opened, place: Place) -> None:
        other = Place(
            kind=place.kind, address=place.address, job_id=place.job_id + "x", settings=place.settings
        ).open()
        other.append([b"theirs"], sync=True)

        mine = opened()
        assert mine.read_new() == []
        assert mine.owners() == []
        other.close()

    def test_there_are_none_before_the_first_append(self, opened: Opened) -> None:
        store = opened()

        assert store.read_new() == []
        assert store.owners() == []
        assert store.size == 0
        store.append([], sync=True)
        store.replace([])
        assert opened().read_new() == []

    def test_published_ones_are_visible_at_once(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        writer.publish()
        writer.append([b"1"], sync=False)
        writer.append([b"2"], sync=False)
        writer.publish()

        assert read_all(reader, writer.owner) == [b"1", b"2"]


class TestReplace:
    def test_returns_the_new_ones_only(self, opened: Opened) -> None:
        writer, early = opened(), opened()
        writer.append([b"1", b"2"], sync=True)
        assert read_all(early, writer.owner) == [b"1", b"2"]
        writer.append([b"3"], sync=False)
        writer.replace([b"2"])
        writer.append([b"4"], sync=True)

        assert read_all(opened(), writer.owner) == [b"2", b"4"]
        assert read_all(early, writer.owner) == [b"2", b"4"]

    def test_bounds_the_size(self, opened: Opened) -> None:
        writer = opened()
        sizes: list[int] = []
        for _ in range(5):
            for _ in range(5):
                writer.append([b"x" * 1000], sync=True)
            sizes.append(writer.size)
            writer.replace([b"kept"])

        assert sizes[0] >= 5_000
        assert len(set(sizes[1:])) == 1
        assert writer.size < 100

    def test_with_nothing_leaves_nothing(self, opened: Opened) -> None:
        writer = opened()
        writer.append([b"1"], sync=True)
        writer.replace([])

        assert read_all(opened(), writer.owner) == []
        writer.append([b"2"], sync=True)
        assert read_all(opened(), writer.owner) == [b"2"]

    def test_a_kill_leaves_the_old_ones_or_the_new_ones(self, opened: Opened, place: Place) -> None:
        chance = random.Random(5)
        for _ in range(4):
            with appender(place, "replace-for-ever") as child:
                for _ in range(chance.randint(2, 12)):
                    last = int(child.line())
                said = [int(line) for line in child.kill()]
            last = max([last, *said])  # pyright: ignore[reportPossiblyUnboundVariable]

            left = set(read_all(opened(), child.owner))

            assert left >= set(replacement(last)) or left >= set(replacement(last + 1))


class TestReadingWhatMoves:
    """A reader that reads while records are moved finds them in one of the two places."""

    def test_a_part_is_replaced(self, place: Place) -> None:
        with appender(place, "replace-for-ever") as child:
            child.line()
            for _ in range(READS[place.kind]):
                reader = place.open()
                left = set(read_all(reader, child.owner))
                reader.close()

                steps = {int(item.partition(b"/")[0]) for item in left if b"/" in item}
                assert any(left >= set(replacement(step)) for step in steps)

    def test_a_part_is_taken_over(self, place: Place) -> None:
        with appender(place, "hand-on-for-ever") as child:
            child.line()
            for _ in range(READS[place.kind]):
                reader = place.open()
                found = [item for _, records in reader.read_new() for item in records]
                reader.close()

                assert set(found) == {HANDED_ON}


@pytest.mark.slow
class TestProcesses:
    def test_two_concurrent_ones_lose_nothing(self, opened: Opened, place: Place) -> None:
        reader = opened()
        seen: dict[str, list[bytes]] = {}

        def read() -> None:
            for owner, records in reader.read_new():
                seen.setdefault(owner, []).extend(records)

        with appender(place, "append", "60") as first, appender(place, "append", "60") as second:
            while first.running() or second.running():
                read()
            first.finish()
            second.finish()
        read()

        expected = [record(number) for number in range(60 * GROUP)]
        assert seen == {first.owner: expected, second.owner: expected}

    def test_a_killed_one_is_dead_and_everything_it_synced_exists(self, opened: Opened, place: Place) -> None:
        reader = opened()
        chance = random.Random(7)
        with appender(place, "append-for-ever") as child:
            for _ in range(chance.randint(5, 40)):
                last = int(child.line())
            assert reader.alive(child.owner)
            last = max([last, *map(int, child.kill())])  # pyright: ignore[reportPossiblyUnboundVariable]
        until(lambda: not reader.alive(child.owner))

        seen = read_all(reader, child.owner)

        assert seen == [record(number) for number in range(len(seen))]
        assert len(seen) >= (last + 1) * GROUP
        assert reader.owners() == [child.owner]
        reader.remove(child.owner)
        assert reader.owners() == []

    def test_one_that_hangs_counts_as_dead(self, opened: Opened, place: Place) -> None:
        """Where its lock may outlive it: a held lock on the same machine is in `test_file_leases.py`."""
        reader = opened()
        with appender(place, "hold") as child:
            assert child.line() == "holding"
            elsewhere(place, child.owner)
            assert reader.alive(child.owner)
            child.signal(signal.SIGSTOP)
            until(lambda: not reader.alive(child.owner))
            child.signal(signal.SIGCONT)
            until(lambda: reader.alive(child.owner))

    def test_a_live_one_stays_alive_without_appending(self, opened: Opened, place: Place) -> None:
        reader = opened()
        with appender(place, "hold") as child, appender(place, "hold") as other:
            assert child.line() == other.line() == "holding"
            elsewhere(place, child.owner)
            elsewhere(place, other.owner)
            other.signal(signal.SIGSTOP)
            # As long as it takes to declare a process dead that sends no heartbeats.
            until(lambda: [reader.alive(child.owner), reader.alive(other.owner)] == [True, False])
            assert reader.alive(child.owner)

    def test_one_that_closes_is_dead_at_once_and_its_part_is_kept(self, opened: Opened) -> None:
        writer, reader = opened(), opened()
        writer.append([b"1"], sync=True)
        assert reader.alive(writer.owner)
        writer.close()

        assert not reader.alive(writer.owner)
        assert read_all(reader, writer.owner) == [b"1"]

    def test_an_unknown_owner_is_not_alive(self, opened: Opened) -> None:
        store = opened()
        assert not store.alive("1-nobody")
        store.remove("1-nobody")


class TestRemove:
    def test_removes_one_part_and_is_idempotent(self, opened: Opened) -> None:
        gone, kept, reader = opened(), opened(), opened()
        gone.append([b"1"], sync=True)
        kept.append([b"2"], sync=True)
        gone.close()
        for store in (reader, reader, kept):
            store.remove(gone.owner)

        assert reader.owners() == [kept.owner]
        assert reader.read_new() == [(kept.owner, [b"2"])]
        assert not reader.alive(gone.owner)
