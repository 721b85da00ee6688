from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.observability import event_log
from emberflow.observability.event_file import safe_name
from emberflow.observability.event_log import EventLog, open_log
from tests.support.event_logs import lines_below, record, settings
from tests.support.waiting import until


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    log = EventLog(settings(tmp_path), "scorer")
    yield log
    log.close()


def ids(directory: Path) -> list[str]:
    return [line["id"] for line in lines_below(directory)]


def test_a_flushed_record_is_on_disk(log: EventLog, tmp_path: Path) -> None:
    log.record(record(id="a", score=3))
    log.flush()
    [line] = lines_below(tmp_path / "scorer")
    assert (line["id"], line["attributes"]) == ("a", {"score": 3})


def test_records_are_written_without_a_flush(log: EventLog, tmp_path: Path) -> None:
    for round in range(3):
        log.record(record(id=str(round)))
        until(lambda round=round: len(ids(tmp_path)) == round + 1)


def test_no_file_without_a_record(log: EventLog, tmp_path: Path) -> None:
    log.flush()
    assert list(tmp_path.iterdir()) == []


def test_an_idle_writer_sleeps(log: EventLog, tmp_path: Path) -> None:
    log.record(record())
    until(lambda: ids(tmp_path) and log._wake_at == 1)
    time.sleep(0.02)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05


def test_many_threads_lose_nothing_and_keep_their_order(
    log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "CAPACITY", 50)
    monkeypatch.setattr(event_log, "NOTIFY_AT", 10)
    most = 0

    def write(name: str) -> None:
        nonlocal most
        for number in range(500):
            log.record(record(id=f"{name}{number}"))
            most = max(most, len(log._buffer))

    threads = [threading.Thread(target=write, args=[name]) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    found = ids(tmp_path)
    for name in "abcd":
        assert [id for id in found if id[0] == name] == [f"{name}{number}" for number in range(500)]
    assert most <= 50 + len(threads)


def test_a_full_buffer_blocks_the_caller(
    log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "CAPACITY", 10)
    monkeypatch.setattr(event_log.EventLog, "_write_until_closed", lambda self: None)
    for number in range(100):
        log.record(record(id=str(number)))
        assert len(log._buffer) <= 10
    log.flush()
    assert ids(tmp_path) == [str(number) for number in range(100)]


def test_files_are_rotated_and_the_oldest_removed(tmp_path: Path) -> None:
    log = EventLog(settings(tmp_path, max_file_bytes=1_000, max_files=3), "scorer")
    for number in range(100):
        log.record(record(id=f"{number:03d}"))
    log.close()
    files = sorted(tmp_path.rglob("*.jsonl"))
    assert len(files) == 3
    assert all(file.stat().st_size <= 1_000 for file in files)
    found = ids(tmp_path)
    assert found == [f"{number:03d}" for number in range(100)][-len(found) :]


def test_a_line_larger_than_a_file_has_its_own_file(tmp_path: Path) -> None:
    log = EventLog(settings(tmp_path, max_file_bytes=300), "scorer")
    for id in "abc":
        log.record(record(id=id, text="x" * 500))
    log.close()
    assert len(list(tmp_path.rglob("*.jsonl"))) == 3
    assert ids(tmp_path) == ["a", "b", "c"]


def test_one_log_is_shared_by_all_users(tmp_path: Path) -> None:
    first, second = open_log(settings(tmp_path), "scorer"), open_log(settings(tmp_path), "scorer")
    other = open_log(settings(tmp_path), "other")
    assert first is second
    assert first is not other
    first.record(record(id="a"))
    first.close()
    second.record(record(id="b"))
    second.close()
    second.close()
    other.close()
    assert ids(tmp_path) == ["a", "b"]
    assert len(list(tmp_path.rglob("*.jsonl"))) == 1
    again = open_log(settings(tmp_path), "scorer")
    assert again is not first
    again.close()


def test_a_record_after_the_end_is_still_written(log: EventLog, tmp_path: Path) -> None:
    log.close()
    log.record(record(id="late"))
    until(lambda: ids(tmp_path) == ["late"])
    log.flush()


def test_the_writer_ends_with_its_log(tmp_path: Path) -> None:
    log = EventLog(settings(tmp_path), "ends")
    log.record(record())
    log.close()
    until(lambda: all(thread.name != "event-log-ends" for thread in threading.enumerate()))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_new_log(
    log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.record(record(id="before"))
    log.flush()
    # Not written yet when the process forks: the parent must write it, once.
    monkeypatch.setattr(event_log, "PAUSE_S", 60)
    log.record(record(id="waiting"))
    with log._lock:  # As if the writer were active at that moment.
        child = os.fork()
        if child == 0:
            try:
                log.record(record(id="child"))
                log.flush()
                os._exit(0)
            except BaseException:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    log.flush()
    files = list(tmp_path.rglob("*.jsonl"))
    assert len(files) == 2
    assert sorted(ids(tmp_path)) == ["before", "child", "waiting"]
    [of_child] = [file for file in files if f"-{child}-" in file.name]
    assert b'"child"' in of_child.read_bytes()


def test_a_process_that_ends_without_close_writes_everything(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.support.event_logs import record, settings\n"
        "from emberflow.observability.event_log import open_log\n"
        "log = open_log(settings(sys.argv[1]), 'scorer')\n"
        "for n in range(3000): log.record(record(id=str(n)))\n"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=root, timeout=500)
    assert ids(tmp_path) == [str(n) for n in range(3000)]


def test_a_disk_that_fails_does_not_stop_the_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "logs"
    blocked.write_text("a file where a directory should be")
    log = EventLog(settings(blocked), "scorer")
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            log.record(record(id=str(number)))
            log.flush()
    assert log.lost == 5
    assert len(caplog.records) == 1
    assert "the job continues" in caplog.text
    blocked.unlink()
    log.record(record(id="repaired"))
    log.close()
    assert ids(blocked) == ["repaired"]
    assert "lost 5 records" in caplog.text


def test_a_removed_directory_is_recreated(log: EventLog, tmp_path: Path) -> None:
    log.record(record(id="a"))
    log.flush()
    shutil.rmtree(tmp_path / "scorer")
    log.record(record(id="b"))
    log.flush()
    assert ids(tmp_path) == ["b"]
    assert log.lost == 0


def test_a_disk_that_fills_up_leaves_whole_lines(
    log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.record(record(id="a"))
    log.flush()
    write = os.write

    def half(descriptor: int, data: Any) -> int:
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) - 50])

    monkeypatch.setattr(os, "write", half)
    log.record(record(id="b"))
    log.flush()
    monkeypatch.undo()
    log.record(record(id="c"))
    log.flush()
    assert ids(tmp_path) == ["a", "c"]
    assert log.lost == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"level": "OFF"}, "with OFF no log is opened"),
        ({"directory": "hdfs://logs"}, "local or mounted"),
        ({"directory": ""}, "cannot be written"),
        ({"max_files": 0}, "max_files"),
    ],
)
def test_settings_that_cannot_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as failed:
        open_log(settings(**{"directory": "logs", **changes}), "scorer")
    assert message in str(failed.value)


def test_agents_names_become_folder_names() -> None:
    assert safe_name("order-scorer.v2") == "order-scorer.v2"
    names = ["", "..", "a/b", "a_b", "a\\b", "größe", "x" * 200]
    safe = [safe_name(name) for name in names]
    assert len(set(safe)) == len(names)
    assert all(name and "/" not in name and not name.startswith(".") and len(name) < 100 for name in safe)
    assert [safe_name(name) for name in safe if len(name) <= 80] == [name for name in safe if len(name) <= 80]
