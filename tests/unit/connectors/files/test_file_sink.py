"""Contents and names of files, and what is rejected."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.connectors.files.commit_ledger import CommitLedger, short_id
from emberflow.connectors.files.file_sink import FileSink, RowFormatBuilder
from emberflow.connectors.files.file_sink_options import (
    BucketAssigner,
    BucketContext,
    Encoder,
    OutputFileConfig,
    RollingPolicy,
    to_strftime,
)
from emberflow.connectors.files.file_source import FileSource
from emberflow.connectors.files.stream_formats import StreamFormat
from emberflow.connectors.sink import SinkWriter, WriterContext
from emberflow.errors import CheckpointError, InvalidArgument, NotSupported, SinkFailed
from emberflow.events.batch import Batch
from tests.support.reading import read_all

JOB, SINK = "job-1", "sink"
ID = short_id(JOB, SINK)


def strings(path: Path) -> RowFormatBuilder:
    builder = FileSink.for_row_format(str(path), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def writer_of(sink: FileSink, epoch: int = 0, subtask: int = 0, attempt: str = "a") -> SinkWriter:
    return sink.writer(WriterContext(JOB, SINK, subtask, epoch, attempt))


def run_epoch(sink: FileSink, epoch: int, *batches: list[Any]) -> None:
    """Each batch goes to its own subtask."""
    prepared: list[Any] = []
    for subtask, values in enumerate(batches):
        writer = writer_of(sink, epoch, subtask)
        writer.write(Batch(values))
        prepared.append(writer.prepare())
    sink.commit(JOB, SINK, epoch, pickle.loads(pickle.dumps(prepared)))


def visible(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


def test_names_are_deterministic_and_files_appear_with_the_commit(tmp_path: Path) -> None:
    config = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    sink = strings(tmp_path).with_output_file_config(config).build()
    writer = writer_of(sink, 7, 3)
    writer.write(Batch(["a", 1]))
    writer.write(Batch([("b", None)]))
    prepared = writer.prepare()
    assert visible(tmp_path) == {}
    sink.commit(JOB, SINK, 7, [None, prepared])
    assert visible(tmp_path) == {f"out-{ID}-00000007-0003.txt": "a\n1\n('b', None)\n"}
    assert sink.describe() == f"Files {tmp_path}"


def test_nothing_to_write_creates_nothing(tmp_path: Path) -> None:
    sink = strings(tmp_path / "out").build()
    writer = writer_of(sink)
    writer.write(Batch([]))
    assert writer.prepare() is None
    sink.commit(JOB, SINK, 0, [None])
    assert list(tmp_path.iterdir()) == []


def test_abort_leaves_no_file(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    writer = writer_of(sink)
    writer.write(Batch(["a"]))
    writer.abort()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_json_lines(tmp_path: Path) -> None:
    sink = (
        FileSink.for_row_format(tmp_path, Encoder.json_lines())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    run_epoch(sink, 0, [{"a": "ü\n"}, [1, None]])
    [text] = visible(tmp_path).values()
    assert text == '{"a": "ü\\n"}\n[1, null]\n'
    source = FileSource.for_record_stream_format(StreamFormat.json_lines(), tmp_path).build()
    assert read_all(source) == [{"a": "ü\n"}, [1, None]]


def test_a_custom_encoder(tmp_path: Path) -> None:
    class Shout(Encoder):
        def encode(self, value: Any) -> bytes:
            return f"{value}!".encode()

    run_epoch(
        FileSink.for_row_format(tmp_path, Shout())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build(),
        0,
        ["a", "b"],
    )
    assert list(visible(tmp_path).values()) == ["a!b!"]


def test_buckets_are_folders(tmp_path: Path) -> None:
    sink = strings(tmp_path).with_bucket_assigner(lambda value: f"kind={value[0]}/x").build()
    run_epoch(sink, 0, ["a1", "b1", "a2"], ["a3"])
    assert visible(tmp_path) == {
        f"kind=a/x/part-{ID}-00000000-0000": "a1\na2\n",
        f"kind=a/x/part-{ID}-00000000-0001": "a3\n",
        f"kind=b/x/part-{ID}-00000000-0000": "b1\n",
    }


def test_bucket_assigners_see_the_timestamp(tmp_path: Path) -> None:
    class ByTimestamp(BucketAssigner):
        def get_bucket_id(self, element: Any, context: BucketContext) -> str:
            return f"t={context.timestamp}"

    sink = strings(tmp_path).with_bucket_assigner(ByTimestamp()).build()
    writer = writer_of(sink)
    writer.write(Batch(["a", "b"], [5, None]))
    sink.commit(JOB, SINK, 0, [writer.prepare()])
    assert [name.split("/")[0] for name in visible(tmp_path)] == ["t=5", "t=None"]


def test_buckets_by_date(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    moment = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    monkeypatch.setattr("time.time_ns", lambda: int(moment.timestamp()) * 10**9)
    assigner = BucketAssigner.date_time_bucket_assigner(timezone_id="Asia/Tokyo")
    run_epoch(strings(tmp_path).with_bucket_assigner(assigner).build(), 0, ["a"])
    assert [name.split("/")[0] for name in visible(tmp_path)] == ["2026-02-01--08"]


def test_java_date_formats() -> None:
    assert to_strftime("yyyy/MM/dd'T'HH:mm:ss 'o''clock' 100% ''") == "%Y/%m/%dT%H:%M:%S o'clock 100%% '"
    with pytest.raises(InvalidArgument, match="letters 'EEE'"):
        to_strftime("EEE")
    with pytest.raises(InvalidArgument, match="unclosed quote"):
        to_strftime("yyyy'T")


def test_more_buckets_than_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberflow.connectors.files.file_sink.MAX_OPEN_FILES", 3)
    sink = strings(tmp_path).with_bucket_assigner(lambda value: f"b{value % 10}").build()
    run_epoch(sink, 0, list(range(100)))
    assert len(visible(tmp_path)) == 10
    assert all(len(text.splitlines()) == 10 for text in visible(tmp_path).values())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.text("ab", max_size=6), max_size=8), max_size=6), st.integers(1, 40))
def test_files_end_at_the_first_record_past_the_part_size(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]], part_size: int
) -> None:
    folder = tmp_path_factory.mktemp("roll")
    sink = strings(folder).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size)).build()
    writer = writer_of(sink)
    for batch in batches:
        writer.write(Batch(batch))
    sink.commit(JOB, SINK, 0, [writer.prepare()])
    texts = visible(folder)
    stem = f"part-{ID}-00000000-0000"
    names = [stem, *(f"{stem}-{number}" for number in range(1, len(texts)))][: len(texts)]
    assert sorted(texts) == sorted(names)
    assert "".join(texts[name] for name in names) == "".join(
        line + "\n" for batch in batches for line in batch
    )
    for name in names[:-1]:
        assert len(texts[name]) >= part_size
    for text in texts.values():
        assert len(text) - len(text.splitlines()[-1]) - 1 < part_size


def test_jobs_and_sinks_share_a_folder(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    for job, sink_id in (("a-b", "c"), ("a", "b-c"), ("a/../../b", "c")):
        writer = sink.writer(WriterContext(job, sink_id, 0, 0, "x/../y"))
        writer.write(Batch([job]))
        sink.commit(job, sink_id, 0, [writer.prepare()])
    assert sorted(visible(tmp_path).values()) == ["a\n", "a-b\n", "a/../../b\n"]


def test_after_a_job_that_cannot_be_continued_only_results_are_left(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    run_epoch(sink, 0, ["a"])
    sink.finished("another job", SINK)
    assert [path.name for path in tmp_path.glob("*")] != [
        path.name for path in tmp_path.iterdir() if path.is_file()
    ]
    sink.finished(JOB, SINK)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["a\n"]


def test_a_repeated_epoch_changes_nothing(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    run_epoch(sink, 0, ["a"])
    run_epoch(sink, 1, ["b"])
    before = visible(tmp_path)
    run_epoch(sink, 1, ["other"])
    run_epoch(sink, 0, ["other"])
    assert visible(tmp_path) == before
    assert list(CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir()) == []


def test_a_repeated_epoch_is_recognized_after_its_record_was_cleaned_and_its_file_moved(
    tmp_path: Path,
) -> None:
    sink = strings(tmp_path).build()
    for epoch in range(8):
        run_epoch(sink, epoch, [str(epoch)])
    ledger = CommitLedger(str(tmp_path), JOB, SINK).staging.parent
    assert sorted(os.listdir(ledger)) == ["00000005.done", "00000006.done", "00000007.done", "inprogress"]
    for path in tmp_path.glob("part-*"):
        path.unlink()
    for epoch in (2, 7):
        run_epoch(sink, epoch, [str(epoch)])
    assert visible(tmp_path) == {}


@pytest.mark.parametrize("lost", ["nothing", "staging"])
@pytest.mark.parametrize("renamed", [1, 2])
def test_files_moved_after_a_crash_in_the_middle_of_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int, lost: str
) -> None:
    """A reader may move visible files, even before the ledger records the whole epoch. Staged files must not disappear."""
    sink = strings(tmp_path).build()
    run_epoch(sink, 0, ["a"])
    replaced: list[Any] = []
    real = os.replace

    def crash(source: Any, target: Any) -> None:
        if len(replaced) == renamed and not str(source).endswith(".tmp"):
            raise KeyboardInterrupt
        real(source, target)
        if Path(target).parent == tmp_path:
            replaced.append(target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        run_epoch(sink, 1, ["b"], ["c"])
    monkeypatch.undo()
    for path in tmp_path.glob("part-*"):
        path.unlink()
    if lost == "staging":
        for path in CommitLedger(str(tmp_path), JOB, SINK).staging.iterdir():
            path.unlink()
        with pytest.raises(SinkFailed, match="its staged file is gone"):
            sink.take_over(JOB, SINK, 2)
        return

    assert sink.take_over(JOB, SINK, 2).epoch == 1
    assert sorted(visible(tmp_path).values()) == ["b\n", "c\n"][renamed:]
    ledger = CommitLedger(str(tmp_path), JOB, SINK, 2)
    ledger.commit(2, [])
    assert list(ledger.staging.iterdir()) == []


def test_leftovers_of_dead_attempts_are_removed_but_later_epochs_are_kept(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    dead, later = writer_of(sink, 0, 0, "dead"), writer_of(sink, 1, 0, "later")
    dead.write(Batch(["x"]))
    dead.prepare()
    later.write(Batch(["y"]))
    prepared = later.prepare()
    run_epoch(sink, 0, ["a"])
    assert os.listdir(CommitLedger(str(tmp_path), JOB, SINK).staging) == ["00000001-0000-0.later"]
    sink.commit(JOB, SINK, 1, [prepared])
    assert sorted(visible(tmp_path).values()) == ["a\n", "y\n"]


def test_staged_files_that_are_gone_fail_the_commit(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    writer = writer_of(sink)
    writer.write(Batch(["x"]))
    prepared = writer.prepare()
    staging = CommitLedger(str(tmp_path), JOB, SINK).staging
    (staging / "00000000-0000-0.a").unlink()
    with pytest.raises(SinkFailed) as caught:
        sink.commit(JOB, SINK, 0, [prepared])
    assert caught.value.message == (
        f"the files staged for epoch 0 are gone from {staging}: 00000000-0000-0.a"
    )
    assert "one folder for all workers" in caught.value.way_out


def test_an_unreadable_ledger(tmp_path: Path) -> None:
    sink = strings(tmp_path).build()
    run_epoch(sink, 0, ["a"])
    folder = CommitLedger(str(tmp_path), JOB, SINK).staging.parent
    for text in ("{", json.dumps({"version": 2, "renames": []}), json.dumps({"version": 3}), "[]"):
        (folder / "00000001.json").write_text(text)
        with pytest.raises(
            CheckpointError, match=r"00000001\.json (is corrupted|was written by a newer version)"
        ):
            run_epoch(sink, 2, ["b"])


def test_the_format_of_the_ledger_has_not_changed(tmp_path: Path) -> None:
    run_epoch(strings(tmp_path).build(), 4, ["a"])
    entry = CommitLedger(str(tmp_path), JOB, SINK).staging.parent / "00000004.done"
    assert json.loads(entry.read_text()) == {
        "version": 2,
        "epoch": 4,
        "renames": [["00000004-0000-0.a", f"part-{ID}-00000004-0000", 2, 3723141383]],
        "checksum": 115796367,
    }


def test_a_decision_of_the_first_version_is_completed(tmp_path: Path) -> None:
    """Without its own checksum and those of the files, also in checkpoints."""
    sink = strings(tmp_path).build()
    folder = CommitLedger(str(tmp_path), JOB, SINK).staging.parent
    for epoch, text in enumerate(("a", "b")):
        writer = writer_of(sink, epoch=epoch)
        writer.write(Batch([text]))
        prepared = [item[:3] for item in writer.prepare()]
        if text == "b":
            body = {"version": 1, "epoch": 1, "renames": [item[:2] for item in prepared]}
            (folder / "00000001.json").write_text(json.dumps(body))
            sink.take_over(JOB, SINK, 2)
        else:
            sink.commit(JOB, SINK, 0, [prepared])
    assert sorted(visible(tmp_path).values()) == ["a\n", "b\n"]


def test_a_value_that_cannot_be_encoded_is_named(tmp_path: Path) -> None:
    sink = (
        FileSink.for_row_format(tmp_path, Encoder.json_lines())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    with pytest.raises(SinkFailed) as caught:
        writer_of(sink).write(Batch([1, {2}, 3]))
    assert str(caught.value).splitlines() == [
        f"SinkFailed [EF2106]: the value {{2}} could not be encoded for {tmp_path}",
        "  cause: TypeError: Object of type set is not JSON serializable",
        "  what to do: map() it to something the encoder can write before sink_to()",
    ]


def test_a_disk_that_refuses_writes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkFailed, match=r"records could not be written below .*\n  cause: \w+Error"):
        writer_of(strings(tmp_path / "file" / "x").build()).write(Batch(["a"]))


@pytest.mark.parametrize("bucket", ["../x", "/etc", "a//b", ".emberflow/x", ".", 5, "a\0b"])
def test_buckets_outside_the_base_path_are_rejected(tmp_path: Path, bucket: Any) -> None:
    sink = strings(tmp_path).with_bucket_assigner(lambda value: bucket).build()
    with pytest.raises(SinkFailed, match="which is not a folder below the base path"):
        writer_of(sink).write(Batch(["a"]))


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: FileSink.for_row_format("x", str), InvalidArgument, "needs an Encoder"),  # pyright: ignore[reportArgumentType]
        (
            lambda: FileSink.for_row_format("s3://x", Encoder.json_lines()),
            NotSupported,
            "s3://x is on a file system",
        ),
        (lambda: Encoder.simple_string_encoder("utf-99"), InvalidArgument, "no charset 'utf-99'"),
        (lambda: OutputFileConfig("a/b"), InvalidArgument, "cannot be part of a file name"),
        (lambda: RollingPolicy.default_rolling_policy(0), InvalidArgument, "a part size of 0 bytes"),
        (
            lambda: BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Base"),
            InvalidArgument,
            "no time zone 'Mars/Base'",
        ),
    ],
)
def test_impossible_options_are_rejected(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_a_built_sink_can_be_pickled(tmp_path: Path) -> None:
    builder = strings(tmp_path).with_bucket_assigner(
        BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
    )
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    sink = builder.with_rolling_policy(policy).with_bucket_check_interval(1000).build()
    run_epoch(pickle.loads(pickle.dumps(sink)), 0, ["a"])
    assert list(visible(tmp_path).values()) == ["a\n"]


def test_without_a_bucket_assigner_there_is_a_folder_for_every_hour(tmp_path: Path) -> None:
    """As in Flink: `yyyy-MM-dd--HH` in the machine's time zone."""
    run_epoch(FileSink.for_row_format(tmp_path, Encoder.simple_string_encoder()).build(), 0, ["a"])
    (folder,) = [item.name for item in tmp_path.iterdir() if not item.name.startswith(".")]
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}--\d{2}", folder)
