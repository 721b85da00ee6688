"""Where a Spark job's sources start: decided once, stored, and used by a repeated first batch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.files.file_source import FileSource
from emberflow.connectors.files.stream_formats import StreamFormat
from emberflow.connectors.source import Source, read_between
from emberflow.engines.spark.driver.offsets import OffsetPlanner
from emberflow.engines.spark.driver.source_starts import Starts, source_starts
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec, for_stage
from emberflow.engines.spark.worker.source_reader import read_whole
from emberflow.errors import CheckpointUnusable, CorruptData
from emberflow.plan.graphs.job_graph import JobGraph, source_of
from emberflow.plan.job_contract import JobConfig
from emberflow.streams import DataGeneratorSource, IterableSource, StreamExecutionEnvironment
from emberflow.testing import TestSource
from tests.support.spark_specs import spec_of

UID = "numbers"
HANG_GUARD_S = 120


def twice(index: int) -> int:
    return index * 2


def graph_of(source: Source) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.add_source(source).uid(UID).print()
    return env.job_graph()


def starts(home: Path, source: Source | None = None, parallelism: int = 2) -> list[list[Any]]:
    config = JobConfig(checkpoint_dir=str(home), parallelism=parallelism, max_parallelism=64)
    found: Starts = source_starts(
        graph_of(source or DataGeneratorSource(twice, count=20)), config, home, None
    )
    return found[UID]


def planner(source: Source, begins: list[list[Any]]) -> OffsetPlanner:
    return OffsetPlanner(dump_spec(source_spec(source, begins)), 0)


def source_spec(source: Source, begins: list[list[Any]], *, batch: bool = False) -> JobSpec:
    return spec_of(
        graph_of(source),
        parallelism=2,
        max_parallelism=64,
        batch=batch,
        channels={0: len(begins)},
        start_positions={0: begins},
    )


def fresh(source: Source, parallelism: int = 2) -> list[list[Any]]:
    return [[position, False] for position in source.start(parallelism)]


def read(source: Source, made: OffsetPlanner, start: Any, end: Any) -> list[Any]:
    """Like Spark's tasks."""
    found: list[Any] = []
    for share in made.shares(json.loads(json.dumps(start)), json.loads(json.dumps(end))):
        chunks = share.chunks
        if chunks is None:
            chunks = read_between(source, share.channel, share.start, share.stop, share.limit)
        found += [value for chunk in chunks for value in chunk.values]
    return found


def folder_of(tmp_path: Path, *names: str) -> FileSource:
    for name in names:
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path).build()


def test_a_later_start_uses_the_positions_of_the_first(tmp_path: Path) -> None:
    first = starts(tmp_path, parallelism=3)
    assert first == [[[0, 3], False], [[1, 3], False], [[2, 3], False]]
    assert starts(tmp_path, parallelism=2) == first
    assert starts(tmp_path, DataGeneratorSource(twice, count=20, parallelism=1)) == first
    stored = json.loads((tmp_path / "channels.json").read_text())
    assert {**stored, "checksum": 0} == {"format": 2, "sources": {UID: first}, "checksum": 0}


def test_files_added_after_the_first_start_are_not_read(tmp_path: Path) -> None:
    """The first start was interrupted before it read anything: between this file and Spark's first offset."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    first = starts(tmp_path, folder_of(inputs, "b", "c"))
    assert starts(tmp_path, folder_of(inputs, "a", "d")) == first
    assert [[Path(path).name for path in position["todo"]] for position, _ in first] == [["b"], ["c"]]


def test_the_spark_folder_may_be_deleted(tmp_path: Path) -> None:
    """The job then starts over from its first positions."""
    first = starts(tmp_path, parallelism=3)
    begin_batch(tmp_path)
    for path in (tmp_path / "spark" / "offsets").iterdir():
        path.unlink()
    assert starts(tmp_path) == first


def begin_batch(home: Path, *, commit: bool = False) -> None:
    for folder in ["offsets", *(["commits"] if commit else [])]:
        (home / "spark" / folder).mkdir(parents=True)
        (home / "spark" / folder / "0").write_text("v1\n")


def damaged(copy: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "cut": copy[:-3],
        "not text": b"\xff" + copy,
        "flipped": copy.replace(b"1,", b"3,", 1),
        "list": b"[1]",
        "not numbers": b'{"a": [1]}',
        "zero": b'{"a": 0}',
        "true": b'{"a": true}',
        "no positions": b'{"format": 2, "sources": {"numbers": []}}',
        "no pairs": b'{"format": 2, "sources": {"numbers": [1, 2]}}',
    }


@pytest.mark.parametrize("damage", ["missing", *damaged(b"")])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, damage: str) -> None:
    first = starts(tmp_path)
    begin_batch(tmp_path)
    path = tmp_path / "channels.json"
    copy = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(damaged(copy)[damage])
    with pytest.raises(CorruptData) as caught:
        starts(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"CorruptData [EF3003]: {path} is corrupted"
    assert lines[2] == (
        "  what to do: restore it from a backup; without one, start with an empty checkpoint directory and another "
        "output folder, from the last savepoint if there is one"
    )
    # The advice, followed.
    path.write_bytes(copy)
    assert starts(tmp_path) == first
    assert starts(tmp_path / "empty") == first


def test_a_newer_version_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "channels.json").write_text(json.dumps({"format": 3, "sources": {}}))
    with pytest.raises(CheckpointUnusable, match=r"newer version of emberflow \(format 3\)"):
        starts(tmp_path)


@pytest.mark.parametrize("stored", [{UID: 3}, {"format": 1, "channels": {UID: 3}}])
def test_version_1_is_read(tmp_path: Path, stored: dict[str, Any]) -> None:
    """It stored numbers of channels only."""
    (tmp_path / "channels.json").write_text(json.dumps(stored))
    wanted = [[[0, 3], False], [[1, 3], False], [[2, 3], False]]
    assert starts(tmp_path) == wanted, (
        "nothing was committed: the source determines them, with the same number"
    )
    (tmp_path / "channels.json").write_text(json.dumps(stored))
    begin_batch(tmp_path, commit=True)
    assert len(starts(tmp_path)) == 3, "Spark knows the positions"


def test_version_1_with_a_source_that_has_other_channels_now(tmp_path: Path) -> None:
    (tmp_path / "channels.json").write_text(json.dumps({UID: 30}))
    with pytest.raises(
        CheckpointUnusable, match=r"had 30 channels when the job .* was started, and has 20 now"
    ):
        starts(tmp_path)


def test_a_repeated_first_batch_starts_where_the_first_attempt_did(tmp_path: Path) -> None:
    """A query started by the user: Spark asks for its initial offset again, and there are more files by now."""
    source = folder_of(tmp_path, "b", "c", "d", "e")
    made = planner(source, fresh(source))
    begin = made.initial()
    end = made.latest(begin)
    first = read(source, made, begin, end)
    assert sorted(first) == [f"{name}{line}" for name in "bcde" for line in "12"]
    source = folder_of(tmp_path, "a", "c0")
    again = planner(source, fresh(source))
    assert again.initial() != begin
    assert read(source, again, again.initial(), end) == first
    assert read(source, again, end, again.latest(end)) == [], "and continues after it"


@pytest.mark.parametrize(
    "source",
    [
        DataGeneratorSource(twice, count=35),
        DataGeneratorSource(twice, count=35, parallelism=5),
        TestSource(range(35)),
        IterableSource(lambda: range(35), bounded=False),
    ],
    ids=["generator", "five channels", "test", "iterable"],
)
@pytest.mark.parametrize("restart_after", range(4))
def test_every_batch_may_be_repeated_by_another_process(source: Source, restart_after: int) -> None:
    begins = fresh(source)
    made = planner(source, begins)
    offsets, found = [made.initial()], list[Any]()
    deadline_s = time.monotonic() + HANG_GUARD_S
    while len(found) < 35 and time.monotonic() < deadline_s:
        offsets.append(made.latest(offsets[-1]))
        if len(offsets) == restart_after + 2:
            made = planner(source, begins)
        found += read(source, made, offsets[-2], offsets[-1])
    assert len(found) == len(set(found)) == 35


def slowly() -> Iterator[int]:
    for number in range(1_000_000):
        time.sleep(0.05)
        yield number


def test_a_repeated_batch_waits_for_values_that_an_iterable_had_returned() -> None:
    """However much a new iterable has returned by then."""
    source = IterableSource(slowly, bounded=False)
    begins = fresh(source)
    made = planner(source, begins)
    begin = end = made.initial()
    deadline_s = time.monotonic() + HANG_GUARD_S
    while end["channels"][0][0] < 3 and time.monotonic() < deadline_s:
        end = made.latest(end)
    again = read(source, planner(source, begins), begin, end)
    assert again == list(range(end["channels"][0][0]))


def test_a_checkpoint_with_another_number_of_channels_is_rejected() -> None:
    source = DataGeneratorSource(twice, count=20)
    made = planner(source, fresh(source, 3))
    end = made.latest(made.initial())
    other = planner(source, fresh(source, 2))
    for act in (lambda: other.latest(end), lambda: other.shares(other.initial(), end)):
        with pytest.raises(CheckpointUnusable) as caught:
            act()
        assert str(caught.value).splitlines() == [
            "CheckpointUnusable [EF3001]: the query's checkpoint has 3 channels of the source "
            "Data generator (20), but the program now has 2",
            "  what to do: give the program the parallelism that it had (env.set_parallelism), or the query "
            "another checkpointLocation",
            "  the checkpoint was not changed",
        ]


def test_a_task_of_a_batch_job_reads_from_the_positions_that_the_driver_decided(tmp_path: Path) -> None:
    """Files added after the driver listed them, and a parallelism of the source itself, change nothing."""
    source = folder_of(tmp_path, "b", "c", "d")
    spec = source_spec(source, fresh(source, 3), batch=True)
    folder_of(tmp_path, "a", "b0")
    data = dump_spec(for_stage(spec, 0))
    counts: list[int] = []
    for channel in range(3):
        for batch in read_whole(data, 0, channel, channel):
            counts += [row["n"] for row in batch.to_pylist() if row["dest"] == -1]
    assert counts == [2, 2, 2]


def test_only_a_source_stage_carries_positions(tmp_path: Path) -> None:
    source = DataGeneratorSource(twice, count=20)
    spec = source_spec(source, fresh(source))
    assert for_stage(spec, None).start_positions == {}
    assert for_stage(spec, 0).start_positions == {0: fresh(source)}
    spec = replace(spec, start_positions={0: fresh(source), 1: fresh(source)})
    assert for_stage(spec, 0).start_positions == {0: fresh(source)}
    assert source_of(for_stage(spec, 0).graph, spec.graph.stages[0]).source is source
