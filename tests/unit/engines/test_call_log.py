"""The durable log of calls: what was written is found again, what was torn is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.engines.call_log import FileCallLog, read_records
from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.operators.durable import RETURNED, CallRecord


def record(call_id: str, value: Any = None) -> CallRecord:
    return CallRecord(call_id, "module.function", "digest", "function()", RETURNED, value)


def test_records_are_found_by_the_next_process(tmp_path: Path) -> None:
    log = FileCallLog(tmp_path)
    log.resume(0)
    log.write_now(record("a/1", "one"))
    asyncio.run(log.write(record("a/2", {"two": 2})))
    assert log.find("a/1") == record("a/1", "one")
    log.close()

    again = FileCallLog(tmp_path)
    again.resume(1)
    assert again.find("a/1") == record("a/1", "one")
    assert again.find("a/2") == record("a/2", {"two": 2})
    assert again.find("a/3") is None


def test_many_calls_share_a_write(tmp_path: Path) -> None:
    log = FileCallLog(tmp_path)
    log.resume(0)

    async def many() -> None:
        await asyncio.gather(*(log.write(record(f"a/{number}", number)) for number in range(500)))

    asyncio.run(many())
    log.close()
    again = FileCallLog(tmp_path)
    again.resume(0)
    assert [again.find(f"a/{number}") for number in range(500)] == [
        record(f"a/{number}", number) for number in range(500)
    ]


def test_an_epoch_that_is_committed_leaves_nothing_behind(tmp_path: Path) -> None:
    log = FileCallLog(tmp_path)
    log.resume(0)
    log.write_now(record("done/1"))
    log.write_now(record("waits/1"))
    log.begin(1, lambda call_id: call_id.startswith("waits/"))
    assert log.find("done/1") is None
    assert log.find("waits/1") is not None
    assert [path.name[:12] for path in tmp_path.iterdir()] == ["000000000001"]
    log.begin(2, lambda call_id: False)
    assert list(tmp_path.iterdir()) == []


def test_what_another_process_writes_in_the_same_epoch_is_found(tmp_path: Path) -> None:
    first, second = FileCallLog(tmp_path), FileCallLog(tmp_path)
    first.begin(3, lambda call_id: False)
    second.begin(3, lambda call_id: False)
    first.write_now(record("a/1"))
    assert second.find("a/1") is None
    second.begin(3, lambda call_id: False)
    assert second.find("a/1") is not None
    first.write_now(record("a/2"))
    first.forget(["a/1"])
    second.begin(3, lambda call_id: False)
    assert second.find("a/1") is None
    assert second.find("a/2") is not None


def test_a_forgotten_call_stays_forgotten(tmp_path: Path) -> None:
    log = FileCallLog(tmp_path)
    log.resume(0)
    log.write_now(record("a/1"))
    log.forget(["a/1", "a/2"])
    log.close()
    again = FileCallLog(tmp_path)
    again.resume(0)
    assert again.find("a/1") is None


@given(values=st.lists(st.text(max_size=50), max_size=6), cut=st.integers(0, 400))
@settings(deadline=None, max_examples=200)
def test_a_torn_tail_is_dropped(
    values: list[str], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("calls")
    log = FileCallLog(folder)
    log.resume(0)
    ends = [0]
    for number, value in enumerate(values):
        log.write_now(record(f"a/{number}", value))
        ends.append(next(folder.iterdir()).stat().st_size)
    log.close()
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:cut])
    again = FileCallLog(folder)
    again.resume(1)
    whole = sum(1 for end in ends[1:] if end <= cut)
    assert [again.find(f"a/{number}") is not None for number in range(len(values))] == [
        number < whole for number in range(len(values))
    ]


@given(data=st.binary(max_size=300))
def test_any_bytes_can_be_read(data: bytes) -> None:
    records, length = read_records(data)
    assert length <= len(data)
    assert all(isinstance(item, CallRecord | str) for item in records)


def test_an_answer_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    log = FileCallLog(tmp_path)
    log.resume(0)
    with pytest.raises(
        NotSerializable, match=r"the answer of the durable call function\(\) cannot be stored"
    ):
        log.write_now(record("a/1", (number for number in [1])))


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "calls").write_text("a file where a folder should be")
    log = FileCallLog(tmp_path / "calls")
    with pytest.raises(CallLogFailed, match="cannot be written") as caught:
        log.write_now(record("a/1"))
    assert "calls whose answer was not written are made again" in str(caught.value)
    with pytest.raises(CallLogFailed):
        asyncio.run(log.write(record("a/2")))
    assert log.find("a/2") is None
