"""One owner at a time: the lock rejects a second job, the fencing epoch prevents a replaced one from committing."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import re
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.approvals.asking import FileApprovals
from emberflow.approvals.question_files import ANSWER, HISTORY, question_name
from emberflow.durable.log import StoredCallLog
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.engines.job.offline_savepoint import create_savepoint
from emberflow.engines.job.ownership import LOCK, lock_directory
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, FileCheckpoints
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SqliteCheckpoints
from emberflow.errors import CallLogFailed, CheckpointInUse, OwnershipLost, StepFailed
from emberflow.events.fence import FOLDER
from emberflow.operators.agents.calls.durable_calls import CallRecord
from emberflow.operators.agents.guards.questions import Question
from emberflow.streams import RestartStrategies
from emberflow.testing import (
    LOCAL,
    LOCAL_SQLITE,
    Host,
    Pause,
    TestSource,
    literal_files,
    on_every_host,
    read_committed,
)
from tests.support.waiting import until

BOTH = (LOCAL, LOCAL_SQLITE)


def begin(host: Host, folder: Path, source: TestSource, **options: Any) -> Any:
    env = host.environment(checkpoint_dir=folder / "checkpoints", options=options)
    env.enable_checkpointing(20)
    env.add_source(source).key_by(lambda value: value % 3).reduce(lambda a, b: a + b).sink_to(
        literal_files(folder / "out")
    ).uid("out")
    return env.execute_async("owner")


def endless(count: int = 50) -> TestSource:
    return TestSource(range(count), bounded=False)


@on_every_host(hosts=BOTH)
def test_a_second_job_on_a_directory_is_rejected(host: Host, tmp_path: Path) -> None:
    first = begin(host, tmp_path, endless())
    until(lambda: read_committed(tmp_path / "out"))

    with pytest.raises(CheckpointInUse) as refused:
        begin(host, tmp_path, endless())

    text = str(refused.value)
    assert text.startswith(
        f"CheckpointInUse [EF3004]: the checkpoint directory {tmp_path / 'checkpoints'} is in use by"
    )
    assert f"another job of process {os.getpid()} on {socket.gethostname()} (since 20" in text
    assert "what to do: wait until that job has ended, or stop it" in text
    assert "nothing was started" in text
    first.cancel()


@on_every_host(hosts=BOTH)
def test_after_cancel_and_failure_the_next_job_starts_at_once(host: Host, tmp_path: Path) -> None:
    begin(host, tmp_path, endless()).cancel()

    def fails(value: int) -> int:
        raise ValueError("no")

    env = host.environment(checkpoint_dir=tmp_path / "failing")
    env.add_source(endless()).map(fails).print()
    with pytest.raises(StepFailed):
        env.execute_async("failing").get_job_execution_result().result()

    for _ in range(2):
        begin(host, tmp_path, endless()).cancel()
    begin(host, tmp_path / "failing", TestSource([1])).get_job_execution_result().result()


def test_what_fails_before_the_job_runs_frees_the_directory(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="rocks"):
            begin(LOCAL, tmp_path, endless(), state_backend="rocks")
    begin(LOCAL, tmp_path, TestSource([1])).get_job_execution_result().result()


@on_every_host(hosts=BOTH)
def test_a_replaced_job_commits_nothing_more(host: Host, tmp_path: Path) -> None:
    first = begin(host, tmp_path, TestSource([*range(20), Pause(600_000), *range(20, 40)]))
    until(lambda: len(read_committed(tmp_path / "out")) >= 20)

    second = begin(host, tmp_path, TestSource([*range(20), Pause(0), *range(20, 40)]), take_over=True)
    second.get_job_execution_result().result()

    with pytest.raises(OwnershipLost, match=rf"process {os.getpid()} on .* has taken it over"):
        first.get_job_execution_result().result()
    assert len(read_committed(tmp_path / "out")) == 40
    assert max(read_committed(tmp_path / "out")) == sum(range(0, 40, 3))


def test_a_replaced_job_is_not_restarted_by_its_strategy(tmp_path: Path) -> None:
    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.enable_checkpointing(10).set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 1))
    env.add_source(endless()).sink_to(literal_files(tmp_path / "out")).uid("out")
    first = env.execute_async("owner")
    until(lambda: read_committed(tmp_path / "out"))

    env = LOCAL.environment(checkpoint_dir=tmp_path / "checkpoints", options={"take_over": True})
    env.enable_checkpointing(10)
    env.add_source(endless(60)).sink_to(literal_files(tmp_path / "out")).uid("out")
    second = env.execute_async("owner")

    with pytest.raises(OwnershipLost):
        first.get_job_execution_result().result()
    until(lambda: len(read_committed(tmp_path / "out")) == 60)
    second.cancel()


def test_a_third_job_is_rejected_by_the_one_that_took_over(tmp_path: Path) -> None:
    first = lock_directory(tmp_path)
    second = lock_directory(tmp_path, take_over=True)
    with pytest.raises(CheckpointInUse):
        lock_directory(tmp_path)
    first.release()
    with pytest.raises(CheckpointInUse):
        lock_directory(tmp_path)
    second.release()
    lock_directory(tmp_path).release()


def test_without_locks_the_fencing_epoch_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuses)
    first = lock_directory(tmp_path)
    assert "has no locks" in caplog.text
    fence = first.next_epoch()
    fence.check()
    with pytest.raises(CheckpointInUse, match="another job of process"):
        lock_directory(tmp_path)  # Detected within one process all the same.
    first.release()

    second = lock_directory(tmp_path)
    second.next_epoch().check()
    with pytest.raises(OwnershipLost, match="fencing epoch 1, the new owner 2"):
        fence.check()
    with pytest.raises(OwnershipLost):
        first.next_epoch()
    second.release()


def test_a_lock_whose_file_was_removed(tmp_path: Path) -> None:
    first = lock_directory(tmp_path)
    fence = first.next_epoch()
    (tmp_path / FOLDER / LOCK).unlink()
    second = lock_directory(tmp_path)
    second.next_epoch().check()
    with pytest.raises(OwnershipLost):
        fence.check()
    second.release()
    first.release()


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    first = lock_directory(tmp_path)
    fence = first.next_epoch()
    for path in (tmp_path / FOLDER).iterdir():
        path.unlink()
    with pytest.raises(OwnershipLost, match="its owners folder was removed"):
        fence.check()
    (tmp_path / FOLDER).rmdir()
    with pytest.raises(OwnershipLost):
        fence.check()
    fence.check_if_reachable()  # As on a worker's machine without access to the directory.
    first.release()
    # Counting continues: what older starts have written counts less.
    assert lock_directory(tmp_path).next_epoch().epoch == 2


def test_an_epoch_that_others_have_seen_is_skipped(tmp_path: Path) -> None:
    """A sink knows more starts than the directory: the previous owner is replaced all the same."""
    first = lock_directory(tmp_path)
    fences = [first.next_epoch()]
    for above in (2, 0, 9):
        taken = lock_directory(tmp_path, take_over=True)
        fences.append(taken.next_epoch(above))
        for fence in fences[:-1]:
            with pytest.raises(OwnershipLost):
                fence.check()
        fences[-1].check()
    assert [fence.epoch for fence in fences] == [1, 3, 4, 10]


def test_epochs_only_grow_across_processes(tmp_path: Path) -> None:
    owners = [lock_directory(tmp_path, take_over=True) for _ in range(8)]
    taken: list[int] = []
    lock = threading.Lock()

    def take(number: int) -> None:
        epoch = owners[number].next_epoch().epoch
        with lock:
            taken.append(epoch)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 9))
    alive = [owner for owner in owners if _owns(owner)]
    assert [owner.fence.epoch for owner in alive] == [8]
    for owner in owners:
        owner.release()


def _owns(owner: Any) -> bool:
    try:
        owner.fence.check()
    except OwnershipLost:
        return False
    return True


def _sleeps(ready: Any, stop: Any) -> None:
    ready.set()
    stop.wait(120)


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    owner = lock_directory(tmp_path)
    context = multiprocessing.get_context("fork")
    ready, stop = context.Event(), context.Event()
    child = context.Process(target=_sleeps, args=(ready, stop))
    child.start()
    try:
        assert ready.wait(60)
        with pytest.raises(CheckpointInUse):
            lock_directory(tmp_path)  # The parent still holds it,
        owner.release()
        lock_directory(tmp_path).release()  # and the child does not.
    finally:
        stop.set()
        child.join()


@pytest.mark.parametrize("store", [FileCheckpoints, SqliteCheckpoints])
def test_a_checkpoint_of_a_replaced_start_does_not_count(tmp_path: Path, store: Any) -> None:
    def begun(owner: Any) -> Any:
        made = store(tmp_path)
        made.own(owner.next_epoch())
        return made

    first_owner = lock_directory(tmp_path)
    first = begun(first_owner)
    first.save(Checkpoint(epoch=0), {})
    second_owner = lock_directory(tmp_path, take_over=True)
    second = begun(second_owner)
    assert second.load().epoch == 0
    with pytest.raises(OwnershipLost):
        first.save(Checkpoint(epoch=1), {})
    second.save(Checkpoint(epoch=1, sources={"second": None}), {})  # pyright: ignore[reportArgumentType]

    # Suspended right after the check.
    first._fence = _Blind(first._fence.epoch)
    if store is FileCheckpoints:
        first.save(Checkpoint(epoch=1, sources={"first": None}), {})  # pyright: ignore[reportArgumentType]
    else:
        with pytest.raises(OwnershipLost):
            first.save(Checkpoint(epoch=1, sources={"first": None}), {})  # pyright: ignore[reportArgumentType]
    assert list(store(tmp_path).load().sources) == ["second"]  # pyright: ignore[reportOptionalMemberAccess]
    first_owner.release()
    second_owner.release()


class _Blind:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self) -> None:
        """It was valid then."""

    def lost(self) -> OwnershipLost:
        return OwnershipLost("lost")


def test_a_replaced_process_drops_nothing_from_the_call_log(tmp_path: Path) -> None:
    def call(number: int, answer: str) -> CallRecord:
        return CallRecord(f"s/k-{number}/1/0", "f", "", "f()", value=answer)

    first_owner = lock_directory(tmp_path)
    first = StoredCallLog(FileCallStore(tmp_path / "calls"), fence=first_owner.next_epoch(), claims=True)
    first.begin(0, attempt=1)
    assert first.claim("s/k-1/1/")
    first.flush()
    second_owner = lock_directory(tmp_path, take_over=True)
    second = StoredCallLog(FileCallStore(tmp_path / "calls"), fence=second_owner.next_epoch(), claims=True)
    second.begin(0, attempt=2)
    second.write_now(call(2, "second"))

    # Answers that it has waited for are not lost; the later start keeps its own answers.
    first.write_now(call(1, "first"))
    first.write_now(call(2, "first"))
    with pytest.raises(CallLogFailed, match="no longer belongs to this job"):
        first.begin(1, attempt=1)
    with pytest.raises(CallLogFailed, match="no longer belongs to this job"):
        first.forget(["s/k-1/1/0"])
    first.done("s/k-1/1/")
    with pytest.raises(CallLogFailed, match="no longer belongs to this job"):
        first.flush()

    second.begin(1, attempt=2)
    answers = [second.find(f"s/k-{number}/1/0") for number in (1, 2)]
    assert [answer.value for answer in answers if answer is not None] == ["first", "second"]
    for log in (first, second):
        log.close()
    for owner in (first_owner, second_owner):
        owner.release()


def test_a_replaced_process_neither_asks_nor_settles_a_question(tmp_path: Path) -> None:
    """The later start asks the same question, and needs the answer that was given."""
    question = Question(
        call_id="s/k-1/1/0",
        question="pay?",
        options=("yes", "no"),
        expires_ms=None,
        agent="a",
        action="b",
        key="k",
    )
    first_owner = lock_directory(tmp_path)
    first = FileApprovals(tmp_path / "approvals", first_owner.next_epoch())
    name = question_name(tmp_path / "approvals", question.call_id)
    first._post(name, question)
    (tmp_path / "approvals" / f"{name}{ANSWER}").write_text('{"version": 1, "answer": "yes"}')
    left = {path.name for path in (tmp_path / "approvals").iterdir()}
    second_owner = lock_directory(tmp_path, take_over=True)
    second = FileApprovals(tmp_path / "approvals", second_owner.next_epoch())

    with pytest.raises(OwnershipLost):
        first.settled(question.call_id)
    with pytest.raises(OwnershipLost):
        first._post("another", replace(question, call_id="s/k-2/1/0"))
    assert {path.name for path in (tmp_path / "approvals").iterdir()} == left

    second.settled(question.call_id)
    assert [path.name for path in (tmp_path / "approvals").iterdir()] == [HISTORY]
    for owner in (first_owner, second_owner):
        owner.release()


def test_a_worker_that_also_serves_the_next_start_does_not_fail_for_the_previous_one(tmp_path: Path) -> None:
    """In one session Spark's workers keep running: a call of the first start ends after the second one has started."""
    owner = lock_directory(tmp_path)
    log = StoredCallLog(FileCallStore(tmp_path / "calls"), fence=owner.next_epoch(), claims=True)
    log.claim("step/k-1/1/")
    log.flush()
    second = owner.next_epoch()
    log.write_now(CallRecord("step/k-1/1/1", "f", "", "f()", "returned", "paid"))
    log.claim("step/k-2/1/")
    log._writer.write_pending()
    assert log._writer._failure is not None, "it no longer belongs to the first start"

    log.belongs_to(second)
    log.begin(1, "0/0", 1)

    assert log.claim("step/k-3/1/")
    log.flush()
    found = log.find("step/k-1/1/1")
    assert found is not None
    assert found.value == "paid"
    log.close()
    owner.release()


def test_a_replaced_process_that_hangs_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberflow.durable.log._REPLACED_S", 1.0)
    first_owner = lock_directory(tmp_path)
    first = StoredCallLog(FileCallStore(tmp_path / "calls"), fence=first_owner.next_epoch(), claims=True)
    first.begin(0, attempt=1)
    assert first.claim("s/k-1/1/")
    first.flush()
    second_owner = lock_directory(tmp_path, take_over=True)
    second = StoredCallLog(FileCallStore(tmp_path / "calls"), fence=second_owner.next_epoch(), claims=True)
    second.begin(0, attempt=2)
    assert not second.claim("s/k-1/1/")  # It holds its lease, so the call may be about to end.
    until(lambda: second.claim("s/k-1/1/"))
    for log in (first, second):
        log.close()
    for owner in (first_owner, second_owner):
        owner.release()


def test_no_savepoint_of_a_directory_that_is_in_use(tmp_path: Path) -> None:
    job = begin(LOCAL, tmp_path, endless())
    until(lambda: read_committed(tmp_path / "out"))
    with pytest.raises(CheckpointInUse):
        create_savepoint(str(tmp_path / "checkpoints"), str(tmp_path / "savepoint"))
    job.cancel()
    assert create_savepoint(str(tmp_path / "checkpoints"), str(tmp_path / "savepoint")) == []


def test_the_number_of_an_older_version_is_continued(tmp_path: Path) -> None:
    (tmp_path / "starts").write_text("41")
    owner = lock_directory(tmp_path)
    assert owner.next_epoch().epoch == 42
    assert owner.next_epoch().epoch == 43
    owner.release()
    assert re.fullmatch(r"[\s\S]*43[\s\S]*", (tmp_path / "starts").read_text())
