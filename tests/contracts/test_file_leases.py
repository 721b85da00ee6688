"""On one machine a held lock proves that a process is alive, however late its heartbeat is; nothing else does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores.file_lease import FileLeases
from emberflow.durable.stores.file_store import FileCallStore
from tests.support.call_stores.children import appender
from tests.support.call_stores.places import LEASE_S, Place
from tests.support.waiting import until

ACTION = "step/key-1/1/"


def much_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now_s() + 3_600)


def test_a_suspended_process_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(kind="files", address=str(tmp_path), job_id="job")
    reader = place.open()
    with appender(place, "hold") as child:
        assert child.line() == "holding"
        child.signal(signal.SIGSTOP)
        assert reader.alive(child.owner)
        much_later(monkeypatch)
        assert reader.alive(child.owner), "it may continue at any moment"
        child.kill()
        until(lambda: not reader.alive(child.owner))


def test_a_process_on_another_machine_is_alive_as_long_as_it_sends_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(kind="files", address=str(tmp_path), job_id="job")
    reader = place.open()
    with appender(place, "hold") as child:
        assert child.line() == "holding"
        (place.folder / f"{child.owner}.lease").write_bytes(b"another machine")
        child.signal(signal.SIGSTOP)
        assert reader.alive(child.owner)
        until(lambda: not reader.alive(child.owner))


def test_an_action_of_a_process_with_a_late_heartbeat_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = StoredCallLog(FileCallStore(tmp_path, lease_s=LEASE_S), claims=True)
    assert late.claim(ACTION)
    late.flush()
    lease = next(tmp_path.glob("*.lease"))
    monkeypatch.setattr(os, "utime", id)
    other = StoredCallLog(FileCallStore(tmp_path, lease_s=LEASE_S), claims=True)
    other.begin(1)
    assert not other.claim(ACTION)
    much_later(monkeypatch)
    other.begin(2)
    assert not other.claim(ACTION)
    assert lease.exists()
    late.close()
    much_later(monkeypatch)  # What was cached about it is checked again.
    other.begin(3)
    assert other.claim(ACTION)
    other.close()


def die_with_a_child(folder: str, child_pid: Any) -> None:
    leases = FileLeases(Path(folder))
    leases.take("parent")
    pid = os.fork()
    if pid == 0:
        signal.pause()
    child_pid.value = pid
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_forked_child_does_not_keep_its_parent_alive(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    child_pid = context.Value("i", 0)
    parent = context.Process(target=die_with_a_child, args=(str(tmp_path), child_pid))
    parent.start()
    parent.join()
    try:
        assert (tmp_path / "parent.lease").exists()
        until(lambda: not FileLeases(tmp_path).alive("parent"))
    finally:
        os.kill(child_pid.value, signal.SIGKILL)


def test_a_lease_that_could_not_be_taken_is_taken_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, reader = FileLeases(tmp_path), FileLeases(tmp_path)
    rename = os.rename

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        leases.take("one")
    monkeypatch.setattr(os, "rename", rename)
    assert not reader.alive("one")
    leases.take("one")
    assert reader.alive("one")
    leases.give_up()
    assert not reader.alive("one")
