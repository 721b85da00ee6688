"""State and sinks that do not belong together are rejected, and every way out that the error names works."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files.file_sink import FileSink
from emberflow.connectors.files.file_sink_options import BucketAssigner
from emberflow.connectors.sink import SinkWriter, WriterContext
from emberflow.errors import CheckpointError, CorruptData, SinkFailed, SinkMismatch
from emberflow.events.batch import Batch
from emberflow.testing import (
    LOCAL,
    LOCAL_SQLITE,
    SPARK,
    Host,
    Pause,
    TestSource,
    literal_files,
    on_every_host,
    read_committed,
)
from emberflow.testing.committed_files import LiteralEncoder
from tests.support.waiting import until

LOCAL_BOTH = (LOCAL, LOCAL_SQLITE)
ITEMS = [item for number in range(6) for item in (number, Pause(60))]
VALUES = list(range(6))


class Job:
    """Six records that arrive one by one; if it is stopped in the middle, the next start reads the rest."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.checkpoints, self.out = folder / "checkpoints", folder / "out"

    def start(self, items: list[Any], **options: Any) -> Any:
        env = self.host.environment(checkpoint_dir=self.checkpoints, options=options)
        env.enable_checkpointing(10)
        env.add_source(TestSource(items)).sink_to(literal_files(self.out)).uid("out")
        return env.execute_async("mismatch")

    def begin(self, count: int) -> None:
        """Waits until this many records are visible; then cancels the job."""
        job = self.start([*ITEMS[: 2 * count - 1], Pause(600_000), *ITEMS[2 * count :]])
        self.until_seen(count)
        job.cancel()

    def until_seen(self, count: int) -> None:
        give_up = time.monotonic() + 200
        while len(self.seen()) < count:
            assert time.monotonic() < give_up
            time.sleep(0.01)

    def finish(self, **options: Any) -> list[Any]:
        self.start(ITEMS, **options).get_job_execution_result().result()
        return self.seen()

    def refused(self, **options: Any) -> str:
        with pytest.raises(SinkMismatch) as caught:
            self.finish(**options)
        assert caught.value.way_out
        return str(caught.value)

    def seen(self) -> list[Any]:
        return sorted(read_committed(self.out)) if self.out.exists() else []

    def starts_over_as_advised(self) -> None:
        """`start over with an empty checkpoint directory and another output folder, which makes all output again`"""
        self.checkpoints, self.out = self.checkpoints.with_name("empty"), self.out.with_name("other")
        assert self.finish() == VALUES


def all_checkpoints(job: Job) -> None:
    (job.checkpoints / "latest.json").unlink()
    shutil.rmtree(job.checkpoints / "local", ignore_errors=True)
    for path in job.checkpoints.glob("state.db*"):
        path.unlink()


def state_emptied(job: Job) -> None:
    (job.checkpoints / "latest.json").unlink()
    for path in job.checkpoints.glob("local/*.ckpt"):
        path.unlink()
    for path in job.checkpoints.glob("state.db*"):
        path.unlink()
    if job.host is LOCAL_SQLITE:
        (job.checkpoints / "state.db").touch()


@on_every_host(hosts=LOCAL_BOTH)
@pytest.mark.parametrize("loss", [all_checkpoints, state_emptied])
def test_state_that_is_gone(host: Host, loss: Callable[[Job], None], tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(3)
    before = job.seen()
    loss(job)

    text = job.refused()

    assert f"the state in {job.checkpoints} is gone" in text
    assert str(job.out) in text
    assert job.seen() == before
    assert "SinkMismatch" in job.refused(accept_sinks=True)  # Output would be lost: that cannot be accepted.
    job.starts_over_as_advised()


@on_every_host(hosts=LOCAL_BOTH)
def test_state_from_an_older_copy(host: Host, tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(2)
    shutil.copytree(job.checkpoints, tmp_path / "older")
    job.begin(4)
    job.checkpoints.rename(tmp_path / "newer")
    shutil.copytree(tmp_path / "older", job.checkpoints)

    texts = [job.refused() for _ in range(3)]
    assert all("ends with epoch" in text for text in texts)

    # As the error advises: with the original directory, everything is there, once. However often the other one was tried:
    # the sink has seen more starts than this directory has made.
    shutil.rmtree(job.checkpoints)
    (tmp_path / "newer").rename(job.checkpoints)
    assert job.finish() == VALUES


@on_every_host(hosts=LOCAL_BOTH)
def test_two_copies_of_a_checkpoint_directory(host: Host, tmp_path: Path) -> None:
    """Both are locked by their own job, and have the same number of starts: the later one takes over the sink, and is
    rejected because of its state."""
    job = Job(host, tmp_path)
    job.begin(2)
    copied = shutil.copytree(job.checkpoints, tmp_path / "copy")
    running = job.start([*ITEMS[:7], Pause(600_000), *ITEMS[8:]])
    job.until_seen(4)
    original, job.checkpoints = job.checkpoints, copied

    assert "ends with epoch" in job.refused()

    # The first one commits nothing more (tests/unit/connectors/files/test_file_sink_fencing.py), and continues when restarted.
    running.cancel()
    job.checkpoints = original
    assert job.finish() == VALUES


def copied(directory: Path, target: Path) -> bool:
    """Returns False if the running job removed a file during the copy, such as a temporary one."""
    try:
        shutil.copytree(directory, target, ignore=shutil.ignore_patterns("*-shm"))
    except shutil.Error:
        shutil.rmtree(target)
        return False
    return True


@pytest.mark.parametrize("left", [0.0, 0.3, 0.6])
def test_sqlites_write_ahead_log_is_truncated(left: float, tmp_path: Path) -> None:
    job = Job(LOCAL_SQLITE, tmp_path)
    running = job.start([*ITEMS[:7], Pause(600_000), *ITEMS[8:]])
    job.until_seen(4)
    # As a killed process leaves it: a copy, without the shared memory of processes.
    until(lambda: copied(job.checkpoints, tmp_path / "copy"))
    running.cancel()
    job.checkpoints = tmp_path / "copy"
    (job.checkpoints / "latest.json").unlink()
    size = (job.checkpoints / "state.db-wal").stat().st_size
    assert size > 0, "the log was folded into the database, so this test would show nothing"
    with (job.checkpoints / "state.db-wal").open("r+b") as file:
        file.truncate(int(size * left))

    try:
        assert job.finish() == VALUES
    except (SinkMismatch, CheckpointError):
        job.starts_over_as_advised()


def test_the_newest_checkpoint_is_deleted(tmp_path: Path) -> None:
    """What `CorruptData` once advised: it lost output."""
    job = Job(LOCAL, tmp_path)
    job.begin(3)
    newest = max((job.checkpoints / "local").glob("*.ckpt"))
    data = newest.read_bytes()
    newest.write_bytes(data[:-1])
    with pytest.raises(CorruptData) as caught:
        job.finish()
    assert "delete it" not in caught.value.way_out
    newest.unlink()
    with pytest.raises(CorruptData, match="has lost its newest checkpoint"):
        job.finish()
    (job.checkpoints / "latest.json").unlink()
    # A checkpoint without output after the last output matches the sinks as well as the newest one does.
    try:
        assert job.finish() == VALUES
    except SinkMismatch:
        job.starts_over_as_advised()


def emptied(job: Job) -> None:
    shutil.rmtree(job.out)
    job.out.mkdir()


def ledger_deleted(job: Job) -> None:
    shutil.rmtree(job.out / ".emberflow")


def another_folder(job: Job) -> None:
    job.out = job.out.with_name(f"not-{job.out.name}")


@on_every_host(hosts=LOCAL_BOTH)
@pytest.mark.parametrize("loss", [emptied, ledger_deleted, another_folder])
def test_a_sink_that_has_lost_its_record(host: Host, loss: Callable[[Job], None], tmp_path: Path) -> None:
    refuses_a_sink_without_record(host, loss, tmp_path)


@on_every_host(hosts=(SPARK,))
def test_a_sink_that_was_emptied_between_two_starts_of_spark(host: Host, tmp_path: Path) -> None:
    refuses_a_sink_without_record(host, emptied, tmp_path)


def refuses_a_sink_without_record(host: Host, loss: Callable[[Job], None], tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(3)
    shutil.copytree(job.out, tmp_path / "backup")
    loss(job)

    text = job.refused()
    assert "does not have the record of what this job has committed" in text
    assert str(job.checkpoints) in text
    assert str(job.out) in text

    # Both ways out, the second one first.
    shutil.copytree(job.checkpoints, tmp_path / "kept")
    accepted = job.finish(accept_sinks=True)
    assert [value for value in VALUES if value >= 3] == [value for value in accepted if value >= 3]
    shutil.rmtree(job.checkpoints)
    (tmp_path / "kept").rename(job.checkpoints)
    shutil.rmtree(job.out)
    shutil.copytree(tmp_path / "backup", job.out)
    assert job.finish() == VALUES


@on_every_host(hosts=LOCAL_BOTH)
def test_lost_output_prepared_in_the_newest_checkpoint_can_be_accepted_as_well(
    host: Host, tmp_path: Path
) -> None:
    job = Job(host, tmp_path)

    def run(**options: Any) -> list[Any]:
        """One checkpoint, at the end, with all the output."""
        env = host.environment(checkpoint_dir=job.checkpoints, options=options)
        env.enable_checkpointing(3_600_000)
        env.add_source(TestSource([1, 2])).sink_to(literal_files(job.out)).uid("out")
        env.execute("mismatch")
        return job.seen()

    assert run() == [1, 2]
    emptied(job)
    with pytest.raises(SinkMismatch):
        run()
    assert run(accept_sinks=True) == []
    assert run() == []


@on_every_host(hosts=LOCAL_BOTH)
def test_a_sink_from_an_older_copy(host: Host, tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(2)
    shutil.copytree(job.out, tmp_path / "older")
    job.begin(4)
    shutil.rmtree(job.out)
    shutil.copytree(tmp_path / "older", job.out)
    assert "the folder was restored from an older copy" in job.refused()
    assert job.finish(accept_sinks=True) == [0, 1, 4, 5]


@on_every_host(hosts=(SPARK,))
def test_sparks_state_is_deleted_or_older(host: Host, tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(2)
    shutil.copytree(job.checkpoints / "spark", tmp_path / "older")
    job.begin(4)
    (job.checkpoints / "spark").rename(tmp_path / "newer")

    with pytest.raises(CheckpointError):
        job.finish()
    shutil.rmtree(job.checkpoints / "spark", ignore_errors=True)
    shutil.copytree(tmp_path / "older", job.checkpoints / "spark")
    assert "ends with epoch" in job.refused()

    shutil.rmtree(job.checkpoints / "spark")
    (tmp_path / "newer").rename(job.checkpoints / "spark")
    assert job.finish() == VALUES


@on_every_host(hosts=LOCAL_BOTH)
def test_matching_state_and_sinks_are_not_rejected(host: Host, tmp_path: Path) -> None:
    job = Job(host, tmp_path)
    job.begin(2)
    for _ in range(2):  # The second time there is nothing left to do.
        assert job.finish() == VALUES
    # Another job may write to the same folder.
    job.checkpoints = tmp_path / "second"
    assert job.finish() == sorted(VALUES * 2)


@on_every_host(hosts=LOCAL_BOTH)
@pytest.mark.parametrize("loss", [emptied, ledger_deleted, another_folder])
def test_a_folder_that_changes_before_the_first_output(
    host: Host, loss: Callable[[Job], None], tmp_path: Path
) -> None:
    """Checkpoints without output do not bind the job to a folder; the next output binds it to the folder it goes to."""
    job = Job(host, tmp_path)
    running = job.start([Pause(600_000), *ITEMS])
    until((job.checkpoints / "latest.json").exists)
    running.cancel()
    loss(job)

    running = job.start([Pause(1), *ITEMS[:3], Pause(600_000), *ITEMS[4:]])
    job.until_seen(2)
    running.cancel()

    job.start([Pause(1), *ITEMS]).get_job_execution_result().result()
    assert job.seen() == VALUES
    loss(job)  # From the first output on, the loss is detected.
    with pytest.raises(SinkMismatch):
        job.start([Pause(1), *ITEMS]).get_job_execution_result().result()


def test_a_savepoint_continues_in_another_folder(tmp_path: Path) -> None:
    job = Job(LOCAL, tmp_path)
    running = job.start([*ITEMS[:3], Pause(600_000), *ITEMS[4:]])
    job.until_seen(2)
    running.savepoint(str(tmp_path / "savepoint"), stop=True)

    def resume(name: str) -> Job:
        next_job = Job(LOCAL, tmp_path / name)
        env = LOCAL.environment(checkpoint_dir=next_job.checkpoints)
        env.set_savepoint(str(tmp_path / "savepoint"))
        env.add_source(TestSource(ITEMS)).sink_to(literal_files(next_job.out)).uid("out")
        env.execute("mismatch")
        return next_job

    assert resume("first").seen() == [2, 3, 4, 5]
    assert job.seen() == [0, 1]


def test_outputs_of_a_savepoint_whose_folder_is_gone(tmp_path: Path) -> None:
    old, new = literal_files(tmp_path / "old"), literal_files(tmp_path / "new")
    writer = old.writer(WriterContext("job", "out", 0, 4, "a"))
    writer.write(Batch([1]))
    prepared = [writer.prepare()]
    new.commit("job", "out", 4, prepared)  # Prepared there, visible there.
    assert read_committed(tmp_path / "old") == [1]
    assert not (tmp_path / "new").exists()

    shutil.rmtree(tmp_path / "old")
    with pytest.raises(SinkFailed) as caught:
        new.commit("job", "out", 4, prepared)
    assert f"staged in {tmp_path / 'old'}" in caught.value.message
    assert f"the sink now writes to {tmp_path / 'new'}" in caught.value.message


class FullDisk(FileSink):
    """Rejects writes, and even removing files."""

    def writer(self, context: WriterContext) -> SinkWriter:
        return _FullWriter(super().writer(context), self.base_path)


class _FullWriter:
    def __init__(self, writer: Any, path: str) -> None:
        self._writer = writer
        self._path = path

    def write(self, batch: Batch) -> None:
        raise SinkFailed(f"records could not be written below {self._path}", cause="OSError: no space left")

    def prepare(self) -> Any:
        raise AssertionError

    def abort(self) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")


@on_every_host(hosts=(LOCAL, SPARK))
def test_a_full_disk_is_reported_even_if_nothing_can_be_removed(host: Host, tmp_path: Path) -> None:
    made = (
        FileSink.for_row_format(tmp_path / "out", LiteralEncoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    full = FullDisk(
        made.base_path, made.encoder, made.bucket_assigner, made.rolling_policy, made.output_file_config
    )
    env = host.environment(checkpoint_dir=tmp_path / "checkpoints")
    env.from_collection([1]).sink_to(full).uid("out")
    with pytest.raises(SinkFailed, match=str(tmp_path / "out")):
        env.execute("full")
