"""The durable log of calls: what was written is found again, what is committed goes, claims end with their process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.engines.call_log import StoredCallLog
from emberflow.engines.call_stores.files import FileCallStore, read_records
from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.operators.durable import RETURNED, CallRecord


def record(call_id: str, value: Any = None) -> CallRecord:
    return CallRecord(call_id, "module.function", "digest", "function()", RETURNED, value)


def log_in(folder: Path, *, claims: bool = True) -> StoredCallLog:
    return StoredCallLog(FileCallStore(folder), claims=claims)


def eventually(condition: Callable[[], bool]) -> None:
    """Claims and the like are written in the background."""

    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(wait(), 30))


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


def test_what_is_committed_goes_but_for_parked_actions(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    log.write_now(record("done/1"))
    log.write_now(record("waits/1"))
    log.park({"waits/": 0})
    log.begin(1)
    assert log.find("done/1") is None
    assert log.find("waits/1") is not None
    log.resumed("waits/")
    log.begin(1)
    assert log.find("waits/1") is not None, "the batch is repeated, so the action is in state once more"
    log.begin(2)
    assert log.find("waits/1") is None


def test_an_action_that_is_parked_again_in_a_repeated_batch_stays(tmp_path: Path) -> None:
    log, other = log_in(tmp_path), log_in(tmp_path)
    log.begin(0)
    log.write_now(record("waits/1"))
    log.park({"waits/": 0})
    log.begin(1)
    log.resumed("waits/")
    other.begin(1)
    other.park({"waits/": 0})
    for each in (log, other):
        each.begin(2)
        each.begin(3)
        assert each.find("waits/1") is not None


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
    eventually(lambda: second.refresh() or second.running("a/"))
    assert not second.claim("a/")
    first.ended("a/")
    eventually(lambda: second.refresh() or not second.running("a/"))
    assert second.claim("a/")


def test_the_claims_of_a_process_end_with_it(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.begin(0)
    assert first.claim("a/")
    eventually(lambda: second.refresh() or second.running("a/"))
    first.write_now(record("a/1", "paid"))
    first.close()
    eventually(lambda: not second.running("a/"))
    assert second.find("a/1") == record("a/1", "paid"), "judged lost first, then looked at once more"
    assert second.claim("a/")


def test_what_a_dead_process_left_is_taken_over(tmp_path: Path) -> None:
    first = log_in(tmp_path)
    first.begin(4)
    first.write_now(record("now/1"))
    first.write_now(record("parked/1"))
    first.park({"parked/": 0})
    first.close()
    second = log_in(tmp_path)
    second.begin(5)
    assert [second.find("now/1") is None, second.find("parked/1") is None] == [True, False]
    assert len(list(tmp_path.glob("*.calls"))) == 1
    second.close()
    third = log_in(tmp_path)
    third.begin(5)
    assert third.find("parked/1") is not None
    third.resumed("parked/")
    third.begin(6)
    third.begin(7)
    assert third.find("parked/1") is None


def test_a_part_does_not_grow_beyond_what_is_in_flight(tmp_path: Path) -> None:
    log = log_in(tmp_path, claims=False)
    log.begin(0)
    log.write_now(record("parked/1", "x" * 1000))
    log.park({"parked/": 0})
    for epoch in range(1, 200):
        log.begin(epoch)
        log.write_now(record(f"done{epoch}/1", "x" * 50_000))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.calls")) < 3 * 1024 * 1024
    assert log.find("parked/1") is not None
    log.close()
    again = log_in(tmp_path)
    again.begin(200)
    assert again.find("parked/1") is not None


def test_due_times_are_known_to_others(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    first.set_due("1/7", 500)
    first.set_due("1/8", 300)
    eventually(lambda: second.refresh() or second.next_due_ms() == 300)
    first.set_due("1/8", None)
    eventually(lambda: second.refresh() or second.next_due_ms() == 500)


def test_a_forgotten_call_stays_forgotten(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.begin(0)
    log.write_now(record("a/1"))
    log.forget(["a/1", "a/2"])
    log.close()
    again = log_in(tmp_path)
    again.begin(0)
    assert again.find("a/1") is None


@given(values=st.lists(st.text(max_size=50), max_size=6), cut=st.integers(0, 400))
@settings(deadline=None, max_examples=200)
def test_a_torn_tail_is_dropped(
    values: list[str], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("calls")
    log = log_in(folder)
    log.begin(0)
    ends = [0]
    for number, value in enumerate(values):
        log.write_now(record(f"a/{number}", value))
        ends.append(next(folder.glob("*.calls")).stat().st_size)
    log.close()
    for path in folder.glob("*.calls"):
        path.write_bytes(path.read_bytes()[:cut])
    again = log_in(folder)
    again.begin(0)
    whole = sum(1 for end in ends[1:] if end <= cut)
    assert [again.find(f"a/{number}") is not None for number in range(len(values))] == [
        number < whole for number in range(len(values))
    ]


@given(data=st.binary(max_size=300))
def test_any_bytes_can_be_read(data: bytes) -> None:
    records, length = read_records(data)
    assert length <= len(data)
    assert all(isinstance(item, bytes) for item in records)


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
    log.resumed("agent/k1-1/1/")
    log.park({"agent/k2-1/1/": 2})
    log.begin(2)
    log.close()
    reader.refresh()
    assert reader.held_inputs() == {"agent": 3, "a/b": 2}
    again = log_in(tmp_path)
    again.begin(2)
    assert again.held_inputs() == reader.held_inputs(), "also after a restart"
