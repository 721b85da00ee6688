"""Which files are read by which channel, and what happens when they change."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files.file_source import FileSource
from emberflow.connectors.files.stream_formats import StreamFormat
from emberflow.connectors.source import Source
from emberflow.errors import InvalidArgument, NotSupported, SourceFailed
from emberflow.event_time.clock import Duration
from tests.support.reading import read_all, read_channel, through_json

TEXT = StreamFormat.text_line_format()


def lines_of(*paths: str | Path) -> FileSource:
    return FileSource.for_record_stream_format(TEXT, *paths).process_static_file_set().build()


def watched(*paths: str | Path) -> FileSource:
    return FileSource.for_record_stream_format(TEXT, *paths).monitor_continuously(1).build()


def put(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_folders_are_searched_and_hidden_names_skipped(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "3")
    put(tmp_path, "a/z.txt", "1", "2")
    put(tmp_path, ".hidden", "no")
    put(tmp_path, "_emberflow/x/0.json", "no")
    put(tmp_path, ".staging/y", "no")
    assert read_all(lines_of(tmp_path)) == ["1", "2", "3"]


def test_a_file_that_is_named_is_read_even_if_hidden_and_only_once(tmp_path: Path) -> None:
    hidden = put(tmp_path, "_data", "x")
    assert read_all(lines_of(hidden, hidden, hidden.as_uri())) == ["x"]


def test_relative_paths_are_those_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "in/a.txt", "x")
    monkeypatch.chdir(tmp_path)
    source = lines_of("in")
    monkeypatch.chdir("/")
    assert read_all(source) == ["x"]


def test_files_are_spread_over_channels(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"{number}.txt", str(number))
    source = lines_of(tmp_path)
    assert [read_channel(source, channel, start) for channel, start in enumerate(source.start(2))] == [
        ["0", "2", "4"],
        ["1", "3"],
    ]
    assert len(source.start(99)) == 5
    assert source.ordered is False
    assert source.bounded


def test_files_that_appear_later_do_not_shift_the_others(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "b")
    put(tmp_path, "c.txt", "c")
    source = lines_of(tmp_path)
    starts = through_json(source.start(2))
    put(tmp_path, "a.txt", "a")
    restarted: Source = pickle.loads(pickle.dumps(source))
    assert [read_channel(restarted, channel, starts[channel]) for channel in range(2)] == [["b"], ["c"]]


def test_small_files_are_planned_together_and_large_ones_in_pieces(tmp_path: Path) -> None:
    for number in range(10):
        put(tmp_path, f"{number}.txt", "x" * 99)
    put(tmp_path, "large.txt", *["y" * 99] * 100_000)
    source = lines_of(tmp_path)
    position, end = source.plan(0, source.start(1)[0], 4) or (None, False)
    assert (Path(position["todo"][0]).name, position["mark"], end) == ("4.txt", None, False)  # pyright: ignore[reportOptionalSubscript]
    position, end = source.plan(0, source.start(1)[0], 30_000) or (None, False)
    assert len(position["todo"]) == 1  # pyright: ignore[reportOptionalSubscript]
    assert 4_000_000 < position["mark"][0] < 4_400_000  # pyright: ignore[reportOptionalSubscript]
    assert position["mark"][0] % 100 == 0  # pyright: ignore[reportOptionalSubscript]
    assert not end


def test_a_job_that_has_read_everything_may_lose_its_files(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "x")
    source = lines_of(tmp_path)
    [chunk] = source.read(0, source.start(1)[0], 10)
    assert chunk.end
    path.unlink()
    assert read_channel(source, 0, chunk.position) == []
    assert source.plan(0, chunk.position, 10) == (chunk.position, True)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed) as caught:
        lines_of(tmp_path / "nothing").start(1)
    assert str(caught.value).splitlines() == [
        f"SourceFailed [EF2105]: there is no file or folder {tmp_path}/nothing",
        "  what to do: check the path; a relative path is resolved from the folder the program was started in",
    ]


def test_a_folder_without_files(tmp_path: Path) -> None:
    put(tmp_path, "_SUCCESS")
    with pytest.raises(SourceFailed) as caught:
        lines_of(tmp_path).start(1)
    assert str(caught.value).splitlines() == [
        f"SourceFailed [EF2105]: there are no files below {tmp_path}",
        "  what to do: put files there (names that begin with . or _ do not count), "
        "or wait for them with monitor_continuously()",
    ]


@pytest.mark.parametrize("gone", ["a.txt", "b.txt"])
def test_a_file_that_is_gone_at_a_restart(tmp_path: Path, gone: str) -> None:
    put(tmp_path, "a.txt", "1", "2", "3")
    put(tmp_path, "b.txt", "4")
    source = lines_of(tmp_path)
    position = next(source.read(0, source.start(1)[0], 2)).position
    (tmp_path / gone).unlink()
    with pytest.raises(SourceFailed) as caught:
        list(source.read(0, position, 2))
    assert str(caught.value).splitlines() == [
        f"SourceFailed [EF2105]: the file {tmp_path / gone} existed when the source listed it, and is gone now",
        "  what to do: restore it; files must stay until they have been read, also across a restart",
    ]
    with pytest.raises(SourceFailed, match="is gone now"):
        source.plan(0, position, 100)


@pytest.mark.parametrize("text", ["1\n", "one\ntwo\nthree\n", ""])
def test_a_file_that_was_changed_before_the_position(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "a.txt", "1", "2", "3")
    source = lines_of(tmp_path)
    position = next(source.read(0, source.start(1)[0], 2)).position
    path.write_text(text)
    with pytest.raises(SourceFailed) as caught:
        list(source.read(0, position, 2))
    assert str(caught.value).splitlines() == [
        f"SourceFailed [EF2105]: the file {path} is not the one that was read up to byte 4",
        "  what to do: restore the old file, or start over with another checkpoint directory; "
        "give new data a new file name",
    ]


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    put(tmp_path, "a.txt", "1")
    monkeypatch.setattr("emberflow.connectors.files.text_files._open_plain", refuse)
    with pytest.raises(SourceFailed, match=r"cannot be read\n  cause: PermissionError"):
        read_all(lines_of(tmp_path))


def test_values_that_are_not_paths() -> None:
    with pytest.raises(NotSupported, match="s3://bucket/x is on a file system"):
        lines_of("s3://bucket/x")
    with pytest.raises(InvalidArgument, match="needs a path"):
        lines_of()
    with pytest.raises(InvalidArgument, match="the path is empty"):
        lines_of("")


@pytest.mark.parametrize("interval", [timedelta(seconds=1), Duration.seconds(1), 1000])
def test_intervals_in_every_form(tmp_path: Path, interval: Any) -> None:
    source = FileSource.for_record_stream_format(TEXT, tmp_path).monitor_continuously(interval).build()
    assert source.__dict__["_interval_ms"] == 1000
    assert source.bounded is False
    assert source.plan(0, source.start(1)[0], 10) is None


@pytest.mark.parametrize("interval", [0, -1, True, "5s", None])
def test_invalid_intervals(tmp_path: Path, interval: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not a discovery interval"):
        FileSource.for_record_stream_format(TEXT, tmp_path).monitor_continuously(interval)


class Watcher:
    """One job on a watched folder; every round is a new process."""

    def __init__(self, source: FileSource, parallelism: int = 1) -> None:
        self.blob = pickle.dumps(source)
        self.positions = source.start(parallelism)

    def round(self, limit: int = 1000, chunks: int = 10**9) -> list[str]:
        source: Source = pickle.loads(self.blob)
        found: list[str] = []
        for channel, position in enumerate(self.positions):
            for number, chunk in enumerate(source.read(channel, through_json(position), limit), start=1):
                assert not chunk.end
                found += chunk.values
                self.positions[channel] = chunk.position
                if number == chunks:
                    break
        return found


def test_a_watched_folder_is_read_once_file_by_file(tmp_path: Path) -> None:
    job = Watcher(watched(tmp_path), parallelism=3)
    assert job.round() == []
    for number in range(8):
        put(tmp_path, f"{number}.txt", str(number))
    assert sorted(job.round()) == list("01234567")
    assert job.round() == []
    put(tmp_path, "0a.txt", "new")
    assert job.round() == ["new"]


def test_a_watched_folder_continues_inside_a_file(tmp_path: Path) -> None:
    put(tmp_path, "a", "1", "2", "3")
    put(tmp_path, "b", "4", "5")
    job = Watcher(watched(tmp_path))
    rounds = [job.round(limit=1, chunks=1) for _ in range(6)]
    assert rounds == [["1"], ["2"], ["3"], ["4"], ["5"], []]


def test_an_empty_file_is_waited_for(tmp_path: Path) -> None:
    put(tmp_path, "a")
    job = Watcher(watched(tmp_path))
    assert job.round() == []
    put(tmp_path, "a", "now")
    assert job.round() == ["now"]


def test_a_file_that_grows_after_it_was_read_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "a", "1")
    job = Watcher(watched(tmp_path))
    job.round()
    put(tmp_path, "a", "1", "2")
    with pytest.raises(SourceFailed) as caught:
        job.round()
    assert str(caught.value).splitlines()[0] == (
        f"SourceFailed [EF2105]: the file {path} had 2 bytes when it was read and has 4 now; the additional data was not read"
    )
    assert "write elsewhere, then rename" in caught.value.way_out
    path.unlink()
    put(tmp_path, "b", "2")
    assert job.round() == ["2"]


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("chunks", range(1, 8))
def test_a_repeated_batch_has_the_files_of_the_first_attempt(tmp_path: Path, limit: int, chunks: int) -> None:
    """Whatever files were added to the folder in between, under whatever name."""
    for name in "bdf":
        put(tmp_path, name, f"{name}1", f"{name}2", f"{name}3")
    job = Watcher(watched(tmp_path))
    job.round(limit=1, chunks=1)
    before = through_json(job.positions[0])
    first = job.round(limit=limit, chunks=chunks)
    for name in "aceg":
        put(tmp_path, name, f"{name} is new")
    source: FileSource = pickle.loads(job.blob)
    again = source.read_again(0, before, through_json(job.positions[0]), limit)
    assert [value for chunk in again for value in chunk.values] == first
    assert set(job.round()) >= {"a is new", "c is new", "e is new", "g is new"}


def test_a_repeated_batch_whose_file_has_changed_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "a", "1", "2")
    job = Watcher(watched(tmp_path))
    before = job.positions[0]
    job.round()
    put(tmp_path, "a", "1", "2", "3")
    source: FileSource = pickle.loads(job.blob)
    with pytest.raises(SourceFailed, match="had 4 bytes when it was read and has 6 now"):
        list(source.read_again(0, before, job.positions[0], 100))


def test_removed_files_are_forgotten(tmp_path: Path) -> None:
    job = Watcher(watched(tmp_path))
    for number in range(3):
        path = put(tmp_path, f"{number}", "x")
        job.round()
        path.unlink()
    put(tmp_path, "last", "y")
    job.round()
    assert [Path(name).name for name in job.positions[0]["done"]] == ["last"]


def test_a_watched_folder_is_scanned_once_per_interval(tmp_path: Path) -> None:
    source = (
        FileSource.for_record_stream_format(TEXT, tmp_path).monitor_continuously(timedelta(hours=1)).build()
    )
    [position] = source.start(1)
    put(tmp_path, "a", "1")
    put(tmp_path, "b", "2")
    # Stopping early does not count as a scan: the remaining file must not wait for an hour.
    first = next(source.read(0, position, 10))
    [second] = source.read(0, first.position, 10)
    assert first.values + second.values == ["1", "2"]
    put(tmp_path, "c", "3")
    assert list(source.read(0, second.position, 10)) == []


def test_a_watched_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="there is no file or folder"):
        watched(tmp_path / "nothing").start(1)


def test_sources_describe_what_they_read(tmp_path: Path) -> None:
    assert lines_of(tmp_path).describe() == f"Files {tmp_path}"
