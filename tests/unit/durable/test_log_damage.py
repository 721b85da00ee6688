"""A damaged durable call log: only what a crash can have truncated is dropped, and nothing damaged is ever removed."""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores import synced_lengths
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.framing import End, as_part, parse_part
from emberflow.errors import CallLogFailed, CorruptData
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord


def record(call_id: str, value: object = "x") -> CallRecord:
    return CallRecord(call_id, "function", "args", "function()", RETURNED, value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def three_calls(folder: Path) -> Path:
    """The part of a process that has ended, with three recorded calls."""
    log = StoredCallLog(FileCallStore(folder))
    for number in range(3):
        log.write_now(record(f"s/k-1/{number}/1"))
    log.close()
    (part,) = folder.glob("*.calls")
    return part


def begin_again(folder: Path) -> list[bool]:
    """Which of the three calls the next process knows."""
    log = StoredCallLog(FileCallStore(folder))
    try:
        log.begin(0)
        return [log.find(f"s/k-1/{number}/1") is not None for number in range(3)]
    finally:
        log.close()


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit of the first record": lambda path: flip(path, 40),
    "a bit of the last record": lambda path: flip(path, path.stat().st_size - 1),
    "the length of the first record": lambda path: flip(path, 5),
    "the length of the first record, upwards": lambda path: flip(path, 7),
    "the kind of file": lambda path: flip(path, 0),
    "an unknown version": lambda path: path.write_bytes(b"EFCL\x09" + path.read_bytes()[5:]),
    "cut off in the last record": lambda path: os.truncate(path, path.stat().st_size - 3),
    "cut off behind the kind of file": lambda path: os.truncate(path, 5),
    "empty": lambda path: os.truncate(path, 0),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_recorded_calls_never_vanish_silently(damage: str, folder: Path) -> None:
    part = three_calls(folder)
    backup = part.read_bytes()
    DAMAGE[damage](part)
    left = sorted(path.name for path in folder.iterdir())

    for _ in range(2):
        with pytest.raises(CorruptData) as caught:
            begin_again(folder)
        assert str(part) in caught.value.message
        assert "restore the file from a backup" in caught.value.way_out
    assert set(left) <= {path.name for path in folder.iterdir()}, "nothing was removed"

    part.write_bytes(backup)
    assert begin_again(folder) == [True, True, True]


def test_the_other_advice_works_as_well(folder: Path, tmp_path: Path) -> None:
    part = three_calls(folder)
    flip(part, 40)
    with pytest.raises(CorruptData) as caught:
        begin_again(folder)
    owner = part.name.partition(".")[0]
    assert f"move every file {owner}.* out of {folder}" in caught.value.way_out
    for path in folder.glob(f"{owner}.*"):
        shutil.move(path, tmp_path)
    assert begin_again(folder) == [False, False, False], "made again, as the error says"


def test_a_lost_log_is_not_mistaken_for_one_never_written(folder: Path) -> None:
    three_calls(folder)
    shutil.rmtree(folder)
    with pytest.raises(CorruptData, match=f"{folder} is missing") as caught:
        begin_again(folder)
    marker = folder.with_name("calls.json")
    assert f"delete {marker}" in caught.value.way_out
    marker.unlink()
    assert begin_again(folder) == [False, False, False]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "delete"])
def test_a_damaged_lease_loses_nothing(damage: str, folder: Path) -> None:
    three_calls(folder)
    (lease,) = folder.glob("*.lease")
    match damage:
        case "flip":
            flip(lease, 256 + 8)
        case "cut":
            os.truncate(lease, 260)
        case "empty":
            os.truncate(lease, 0)
        case _:
            lease.unlink()
    assert begin_again(folder) == [True, True, True]


@pytest.mark.parametrize("cut", range(1, 17))
def test_a_truncated_tail_is_dropped(cut: int, folder: Path) -> None:
    writer = FileCallStore(folder)
    writer.append([b"one", b"two"], sync=True)
    writer.append([b"tail"], sync=False)
    writer.close()
    (part,) = folder.glob("*.calls")
    os.truncate(part, part.stat().st_size - cut)
    reader = FileCallStore(folder)
    assert reader.read_new() == [(writer.owner, [b"one", b"two"])]
    reader.remove(writer.owner)
    assert list(folder.iterdir()) == []


def after_a_power_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synced_lengths, "same_boot", lambda lease: False)


@pytest.mark.parametrize("left", [b"\0" * 16, b"\0" * 9, b"\xaa" * 16, b"\0" * 3 + b"\xaa" * 13])
def test_a_power_failure_may_leave_anything_after_synced_data(
    left: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = FileCallStore(folder)
    writer.append([b"one", b"two"], sync=True)
    writer.close()
    (part,) = folder.glob("*.calls")
    with part.open("ab") as file:
        file.write(left)
    after_a_power_failure(monkeypatch)
    reader = FileCallStore(folder)
    assert reader.read_new() == [(writer.owner, [b"one", b"two"])]
    reader.remove(writer.owner)


def test_a_valid_record_after_a_damaged_one_is_not_caused_by_a_power_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = FileCallStore(folder)
    writer.append([b"one"], sync=True)
    writer.append([b"two", b"three"], sync=False)
    writer.close()
    (part,) = folder.glob("*.calls")
    flip(part, 5 + 12 + 3 + 12)
    after_a_power_failure(monkeypatch)
    with pytest.raises(CorruptData, match=str(part)):
        FileCallStore(folder).read_new()


def test_without_a_power_failure_written_data_exists(folder: Path) -> None:
    """The process died right after a write, before it reported the data as synced."""
    writer = FileCallStore(folder)
    writer.append([b"one"], sync=False)
    writer.close()
    (part,) = folder.glob("*.calls")
    flip(part, part.stat().st_size - 1)
    with pytest.raises(CorruptData, match=str(part)):
        FileCallStore(folder).read_new()


def test_a_record_that_a_live_process_is_writing_is_not_damage(folder: Path) -> None:
    writer, reader = FileCallStore(folder), FileCallStore(folder)
    writer.append([b"one"], sync=True)
    (part,) = folder.glob("*.calls")
    whole = part.read_bytes()
    frame = as_part([b"two"])[5:]
    # Space first, then bytes, as network file systems show it.
    for written in (frame[:5], bytes(len(frame)), frame[:13] + bytes(2)):
        part.write_bytes(whole + written)
        assert [item for _, records in reader.read_new() for item in records] in ([b"one"], [])
        assert FileCallStore(folder).read_new() == [(writer.owner, [b"one"])]
    part.write_bytes(whole + frame)
    assert reader.read_new() == [(writer.owner, [b"two"])]
    flip(part, 5 + 12)
    with pytest.raises(CorruptData, match=str(part)):
        FileCallStore(folder).read_new()
    writer.close()


def test_a_part_that_is_damaged_later_is_not_removed(folder: Path) -> None:
    writer, reader = FileCallStore(folder), FileCallStore(folder)
    writer.append([b"one"], sync=True)
    assert reader.read_new()
    writer.append([b"two"], sync=True)
    writer.close()
    (part,) = folder.glob("*.calls")
    os.truncate(part, 5 + 12 + 3)
    with pytest.raises(CorruptData, match=str(part)):
        reader.remove(writer.owner)
    part.unlink()
    with pytest.raises(CorruptData, match=str(part)):
        reader.remove(writer.owner)
    assert list(folder.glob("*.lease"))


def test_records_next_to_a_damaged_part_are_returned_after_it_is_restored(folder: Path) -> None:
    writers = [FileCallStore(folder) for _ in range(2)]
    for writer in writers:
        writer.append([writer.owner.encode()], sync=True)
        writer.close()
    last = sorted(folder.glob("*.calls"))[-1]
    backup = last.read_bytes()
    flip(last, 20)
    reader = FileCallStore(folder)
    for _ in range(2):
        with pytest.raises(CorruptData):
            reader.read_new()
    last.write_bytes(backup)
    assert sorted(reader.read_new()) == sorted((item.owner, [item.owner.encode()]) for item in writers)


def test_undecodable_records_stay_an_error(folder: Path) -> None:
    writer = FileCallStore(folder)
    writer.append([b"\x01no pickle"], sync=True)
    writer.close()
    log = StoredCallLog(FileCallStore(folder))
    for _ in range(2):
        with pytest.raises(CorruptData, match="the durable call log cannot be read") as caught:
            log.begin(0)
        assert writer.owner in caught.value.cause
    log.close()


def test_an_fsync_that_failed_is_not_trusted_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FileCallStore(folder)
    writer.append([b"one"], sync=True)
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CallLogFailed):
        writer.append([b"two"], sync=True)
    monkeypatch.setattr(os, "fsync", fsync)
    writer.append([b"three"], sync=True)
    writer.close()
    assert len(list(folder.glob("*.calls"))) == 2
    assert FileCallStore(folder).read_new()[-1] == (writer.owner, [b"three"])


# the previous version


def version_2(*records: bytes) -> bytes:
    return b"EFCL\x02" + b"".join(struct.pack("<II", len(item), zlib.crc32(item)) + item for item in records)


def left_by_version_2(folder: Path, data: bytes) -> Path:
    folder.mkdir()
    (folder / "1-a.lease").touch()
    (folder / "1-a.000000.calls").write_bytes(data)
    return folder / "1-a.000000.calls"


def test_a_part_of_the_previous_version_is_read(folder: Path) -> None:
    left_by_version_2(folder, version_2(b"one", b"two"))
    assert FileCallStore(folder).read_new() == [("1-a", [b"one", b"two"])]


@pytest.mark.parametrize("tail", [b"\x09", b"\x09\0\0\0\1\2\3\4five", bytes(4096)])
def test_a_truncated_tail_of_the_previous_version_is_dropped(tail: bytes, folder: Path) -> None:
    left_by_version_2(folder, version_2(b"one", b"two") + tail)
    assert FileCallStore(folder).read_new() == [("1-a", [b"one", b"two"])]


@pytest.mark.parametrize("at", [5, 7, 10, 14])
def test_damage_of_the_previous_version_is_detected(at: int, folder: Path) -> None:
    part = left_by_version_2(folder, version_2(b"one", b"two"))
    flip(part, at)
    with pytest.raises(CorruptData, match=str(part)):
        FileCallStore(folder).read_new()


@given(data=st.binary(max_size=300))
def test_any_bytes_can_be_parsed(data: bytes) -> None:
    for start in (b"", b"EFCL\x02", b"EFCL\x03"):
        parsed = parse_part(start + data)
        assert parsed.length <= len(start + data)
        assert (parsed.end is End.CLEAN) == (parsed.length == len(start + data))


@given(records=st.lists(st.binary(max_size=60), max_size=6), cut=st.integers(0, 200))
def test_a_truncated_part_contains_the_first_records(records: list[bytes], cut: int) -> None:
    parsed = parse_part(as_part(records)[:cut])
    assert parsed.end is not End.BAD
    assert parsed.records == records[: len(parsed.records)]
    assert parse_part(as_part(records)) == parse_part(as_part(records)[:10_000])
