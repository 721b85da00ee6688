"""Stopping a query between two micro-batches, with a simulated query."""

from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.spark.driver.stopping import HoldFile, StopRequest, finish


class Query:
    """What the test has planned happens between two polls."""

    def __init__(self, *events: Any) -> None:
        self._events = list(events)
        self.isActive = True
        self.trigger = True
        self.looks = 0

    @property
    def status(self) -> dict[str, bool]:
        self.looks += 1
        if self._events:
            self._events.pop(0)(self)
        return {"isTriggerActive": self.trigger}


def logged(home: Path, folder: str, *numbers: int) -> None:
    for number in numbers:
        path = home / "spark" / folder / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def rest(home: Path, query: Query, canceled: threading.Event | None = None) -> None:
    HoldFile(home).wait_for_rest(query, canceled or threading.Event())


def test_the_file_holds_sources_and_is_for_its_user_only(tmp_path: Path) -> None:
    hold = HoldFile(tmp_path)
    hold.remove()
    hold.put()
    assert stat.S_IMODE((tmp_path / "hold").stat().st_mode) == 0o600
    hold.remove()
    assert not (tmp_path / "hold").exists()


def test_the_query_is_at_rest_when_every_started_batch_is_committed(tmp_path: Path) -> None:
    logged(tmp_path, "offsets", 0, 1)
    logged(tmp_path, "commits", 0)

    def idle(query: Query) -> None:
        query.trigger = False

    def commit(query: Query) -> None:
        logged(tmp_path, "commits", 1)

    query = Query(lambda query: None, idle, lambda query: None, commit)
    rest(tmp_path, query)
    assert query.looks == 4


def test_a_trigger_that_is_active_is_waited_for(tmp_path: Path) -> None:
    logged(tmp_path, "offsets", 4)
    logged(tmp_path, "commits", 4)

    def idle(query: Query) -> None:
        query.trigger = False

    query = Query(lambda query: None, lambda query: None, idle)
    rest(tmp_path, query)
    assert query.looks == 3


def test_a_query_that_has_ended_is_at_rest(tmp_path: Path) -> None:
    def end(query: Query) -> None:
        query.isActive = False

    rest(tmp_path, Query(lambda query: None, end))


def test_a_canceled_job_does_not_wait(tmp_path: Path) -> None:
    canceled = threading.Event()

    def cancel(query: Query) -> None:
        canceled.set()

    rest(tmp_path, Query(cancel), canceled)


def test_only_numbers_count_as_batches(tmp_path: Path) -> None:
    hold = HoldFile(tmp_path)
    assert not hold.has_commit
    logged(tmp_path, "commits", 10, 9)
    (tmp_path / "spark" / "commits" / ".11.crc").touch()
    assert hold.has_commit
    logged(tmp_path, "offsets", 9, 10)
    query = Query()
    query.trigger = False
    rest(tmp_path, query)
    assert query.looks == 1, "10 is after 9: compared as numbers"


def test_what_goes_wrong_with_the_savepoint_is_returned() -> None:
    written: list[str] = []
    assert finish(StopRequest("there"), written.append) is None
    assert written == ["there"]
    failure = OSError("full")

    def fail(path: str) -> None:
        raise failure

    assert finish(StopRequest("there"), fail) is failure


def test_requests_are_answered_separately() -> None:
    one, other = StopRequest("a"), StopRequest("b")
    one.done.set_result("a/savepoint")
    assert one.done.result() == "a/savepoint"
    with pytest.raises(TimeoutError):
        other.done.result(timeout=0)
