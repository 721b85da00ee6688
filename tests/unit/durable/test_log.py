"""The durable call log: records are found again, committed ones are dropped, claims end with their process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.object_store import ObjectCallStore
from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord
from tests.support.waiting import until


def record(call_id: str, value: Any = None) -> CallRecord:
    return CallRecord(call_id, "module.function", "digest", "function()", RETURNED, value)


def log_in(folder: Path, *, claims: bool = True) -> StoredCallLog:
    return StoredCallLog(FileCallStore(folder), claims=claims)


def test_records_are_found_by_the_next_process(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(1)
    log.write_now(record("a/1", "one"))
    asyncio.run(log.write(record("a/2", {"two": 2})))
    assert log.find("a/1") == record("a/1", "one")
    log.close()

    again = log_in(tmp_path)
    again.begin(1)
    assert again.find("a/1") == record("a/1", "one")
    assert again.find("a/2") == record("a/2", {"two": 2})
    assert again.find("a/3") is None


def test_many_calls_share_a_write(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)

    async def many() -> None:
        await asyncio.gather(*(log.write(record(f"a/{number}", number)) for number in range(500)))

    asyncio.run(many())
    log.close()
    again = log_in(tmp_path)
    again.begin(0)
    assert [again.find(f"a/{number}") for number in range(500)] == [
        record(f"a/{number}", number) for number in range(500)
    ]


def test_records_of_done_actions_are_dropped_on_commit(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    log.write_now(record("s/k-1/1/1"))
    log.write_now(record("s/l-1/1/1"))
    log.done("s/k-1/1/")
    log.begin(0)
    assert log.find("s/k-1/1/1") is not None, "the epoch is not committed yet"
    log.begin(1)
    assert log.find("s/k-1/1/1") is None
    assert log.find("s/l-1/1/1") is not None, "its action is not done"
    log.done("s/l-1/1/")
    log.begin(2)
    assert log.find("s/l-1/1/1") is None


def test_records_of_a_lost_attempt_are_kept_until_the_repeated_work_has_caught_up(tmp_path: Path) -> None:
    lost = log_in(tmp_path)
    lost.begin(1, "1/0", 7)
    for number in (1, 2):
        lost.write_now(record(f"s/k-2/{number}/1"))
        lost.done(f"s/k-2/{number}/")
    lost.close()
    log = log_in(tmp_path)
    log.begin(1, "1/0", 8)
    log.park({"s/k-2/1/": 0})
    log.begin(2, "1/0", 9)
    assert log.find("s/k-2/1/1") is not None
    assert log.find("s/k-2/2/1") is not None
    log.done("s/k-2/1/")
    log.begin(3, "1/0", 10)
    assert log.find("s/k-2/1/1") is None
    assert log.find("s/k-2/2/1") is not None
    log.done("s/k-2/2/")
    log.begin(4, "1/0", 11)
    assert log.find("s/k-2/2/1") is None


def test_an_abandoned_attempt_does_not_count(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.begin(1, "1/0", 7)
    first.write_now(record("s/k-1/1/1"))
    first.done("s/k-1/1/")
    second.begin(1, "1/0", 8)
    second.park({"s/k-1/1/": 0})
    for log in (first, second):
        log.begin(2, "1/1", 9)
        assert log.find("s/k-1/1/1") is not None
        assert log.parked() == ["s/k-1/1/"]


def test_a_done_action_supersedes_all_earlier_ones(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    for place in ("s/k-1/1/1", "s/k-1/2/1", "s/k-2/1/1", "s/l-1/1/1", "t/k-1/1/1"):
        log.write_now(record(place))
    log.done("s/k-2/1/")
    log.begin(1)
    left = [
        place
        for place in ("s/k-1/1/1", "s/k-1/2/1", "s/k-2/1/1", "s/l-1/1/1", "t/k-1/1/1")
        if log.find(place)
    ]
    assert left == ["s/l-1/1/1", "t/k-1/1/1"]


def test_what_another_process_writes_in_the_same_epoch_is_found(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.begin(3)
    second.begin(3)
    first.write_now(record("a/1"))
    assert second.find("a/1") is None
    second.begin(3)
    assert second.find("a/1") is not None
    first.write_now(record("a/2"))
    first.forget(["a/1"])
    second.begin(3)
    assert second.find("a/1") is None
    assert second.find("a/2") is not None


def test_an_action_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    assert first.claim("a/")
    assert first.running("a/")
    assert not first.claim("a/"), "a repeated batch in the same process"
    until(lambda: second.refresh() or second.running("a/"))
    assert not second.claim("a/")
    first.ended("a/")
    until(lambda: second.refresh() or not second.running("a/"))
    assert second.claim("a/")


def test_the_claims_of_a_process_end_with_it(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.begin(0)
    assert first.claim("a/")
    until(lambda: second.refresh() or second.running("a/"))
    first.write_now(record("a/1", "paid"))
    first.close()
    until(lambda: not second.running("a/"))
    assert second.find("a/1") == record("a/1", "paid"), "found dead first, then read again"
    assert second.claim("a/")


def test_the_part_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    first = log_in(tmp_path)
    first.begin(4)
    first.write_now(record("s/k-1/1/1"))
    first.write_now(record("s/l-1/1/1"))
    first.done("s/k-1/1/")
    first.park({"s/l-1/1/": 0})
    first.close()
    second = log_in(tmp_path)
    second.begin(5)
    assert [second.find("s/k-1/1/1") is None, second.find("s/l-1/1/1") is None] == [True, False]
    assert len(list(tmp_path.glob("*.calls"))) == 1
    second.close()
    third = log_in(tmp_path)
    third.begin(5)
    assert third.find("s/l-1/1/1") is not None
    third.done("s/l-1/1/")
    third.begin(6)
    assert third.find("s/l-1/1/1") is None
    assert third.parked() == []


def test_a_part_does_not_grow_beyond_what_is_in_flight(tmp_path: Path) -> None:
    log = log_in(tmp_path, claims=False)
    log.begin(0)
    log.write_now(record("s/parked-1/1/1", "x" * 1000))
    log.park({"s/parked-1/1/": 0})
    for epoch in range(1, 200):
        log.begin(epoch)
        log.write_now(record(f"s/k{epoch}-1/1/1", "x" * 50_000))
        log.done(f"s/k{epoch}-1/1/")
    assert sum(path.stat().st_size for path in tmp_path.glob("*.calls")) < 3 * 1024 * 1024
    assert log.find("s/parked-1/1/1") is not None
    log.close()
    again = log_in(tmp_path)
    again.begin(200)
    assert again.find("s/parked-1/1/1") is not None


def test_an_end_omitted_from_a_rewritten_part_is_known(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.begin(0)
    assert first.claim("s/k-1/1/")
    assert first.claim("s/l-1/1/")
    first.flush()
    second.refresh()
    assert second.running("s/k-1/1/")
    lost = log_in(tmp_path)
    lost.write_now(record("s/m-1/1/1"))
    lost.close()
    first.ended("s/k-1/1/")
    first.begin(1)
    second.refresh()
    assert not second.running("s/k-1/1/")
    assert second.running("s/l-1/1/")


def test_the_latest_due_time_counts_in_whatever_order_parts_are_read(tmp_path: Path) -> None:
    logs = [log_in(tmp_path) for _ in range(4)]
    for epoch, log in enumerate(logs):
        log.begin(epoch)
        log.set_due("1/7", 100 + epoch)
        log.flush()
    logs[1].begin(9)
    logs[1].set_due("1/7", None)
    for log in logs:
        log.close()
    for _ in range(2):
        reader = log_in(tmp_path)
        reader.begin(10)
        assert reader.next_due_ms() is None
        reader.close()


def test_a_process_that_was_declared_dead_fails(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.write_now(record("s/k-1/1/1"))
    other = FileCallStore(tmp_path)
    (owner,) = other.owners()
    other.remove(owner)
    with pytest.raises(CallLogFailed, match="declared this one dead"):
        log.write_now(record("s/k-1/1/2"))


def test_a_failed_background_write_fails_the_next_batch(tmp_path: Path) -> None:
    (tmp_path / "calls").write_text("a file where a folder should be")
    log = log_in(tmp_path / "calls")
    assert log.claim("s/k-1/1/")
    with pytest.raises(CallLogFailed, match="cannot be written"):
        log.park({"s/k-1/1/": 0})
    log.close()
    with pytest.raises(CallLogFailed, match="is closed"):
        log.ended("s/k-1/1/")


def test_an_action_whose_end_was_lost_is_not_parked_forever(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    log.park({"s/k-1/1/": 2, "s/l-1/1/": 0})
    log.write_now(record("s/k-2/1/1"))
    log.done("s/k-2/1/")
    log.begin(1)
    assert log.parked() == ["s/l-1/1/"]


def test_due_times_are_known_to_others(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.set_due("1/7", 500)
    first.set_due("1/8", 300)
    until(lambda: second.refresh() or second.next_due_ms() == 300)
    first.set_due("1/8", None)
    until(lambda: second.refresh() or second.next_due_ms() == 500)


def test_a_forgotten_call_stays_forgotten(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    log.write_now(record("a/1"))
    log.forget(["a/1", "a/2"])
    log.close()
    again = log_in(tmp_path)
    again.begin(0)
    assert again.find("a/1") is None


def test_a_call_that_another_process_forgot_stays_forgotten(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.write_now(record("s/k-1/1/1", "failed"))
    second.refresh()
    second.forget(["s/k-1/1/1"])
    for log in (first, second):
        log.close()
    for _ in range(3):
        again = log_in(tmp_path)
        again.begin(1)
        assert again.find("s/k-1/1/1") is None
        again.close()
    once_more = log_in(tmp_path)
    once_more.begin(1)
    once_more.write_now(record("s/k-1/1/1", "well"))
    once_more.close()
    last = log_in(tmp_path)
    last.begin(1)
    assert last.find("s/k-1/1/1") == record("s/k-1/1/1", "well")


def test_an_answer_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    with pytest.raises(
        NotSerializable, match=r"the answer of the durable call function\(\) cannot be stored"
    ):
        log.write_now(record("a/1", (number for number in [1])))


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "calls").write_text("a file where a folder should be")
    log = log_in(tmp_path / "calls")
    with pytest.raises(CallLogFailed, match="cannot be written") as caught:
        log.write_now(record("a/1"))
    assert "calls whose answer was not written are made again" in str(caught.value)
    with pytest.raises(CallLogFailed):
        asyncio.run(log.write(record("a/2")))
    assert log.find("a/2") is None


def test_inputs_that_state_holds_are_counted_by_step(tmp_path: Path) -> None:
    log, reader = log_in(tmp_path), log_in(tmp_path)
    log.begin(0)
    log.park({"agent/k1-1/1/": 4, "agent/k2-1/1/": 0, "a/b/k1-1/2/": 1})
    reader.refresh()
    assert reader.held_inputs() == {"agent": 6, "a/b": 2}
    log.begin(1)
    log.done("agent/k1-1/1/")
    log.park({"agent/k2-1/1/": 2})
    log.begin(2)
    log.close()
    reader.refresh()
    assert reader.held_inputs() == {"agent": 3, "a/b": 2}
    again = log_in(tmp_path)
    again.begin(2)
    assert again.held_inputs() == reader.held_inputs(), "also after a restart"


def test_published_records_are_visible_at_once_in_a_store_that_delays_writes(tmp_path: Path) -> None:
    """The next batch may start at once, and process the key in another process; a savepoint may be created at once."""
    first, second = (StoredCallLog(ObjectCallStore(str(tmp_path)), claims=True) for _ in range(2))
    first.begin(1)
    assert first.claim("step/key-1/1/")
    assert first.claim("step/other-1/1/")
    first.park({"step/key-1/1/": 0, "step/other-1/1/": 0})
    first.publish()

    second.begin(2)
    assert not second.claim("step/key-1/1/")

    first.begin(2)
    first.done("step/other-1/1/")
    first.publish()
    second.begin(3)
    assert second.parked() == ["step/key-1/1/"]
    first.close()
    second.close()


class CostlyStore(FileCallStore):
    pause_s = 3_600.0


def test_follow_polls_at_the_stores_interval(tmp_path: Path) -> None:
    writer, reader = log_in(tmp_path), StoredCallLog(CostlyStore(tmp_path))
    writer.begin(1)
    writer.park({"step/a-1/1/": 0})
    reader.follow()
    writer.park({"step/b-1/1/": 0})
    for _ in range(100):
        reader.follow()
    assert reader.parked() == ["step/a-1/1/"]

    reader.follow(at_once=True)
    assert reader.parked() == ["step/a-1/1/", "step/b-1/1/"]
    writer.close()
