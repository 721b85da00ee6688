"""What is written can be read; damage is detected; no incomplete savepoint is left."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.errors import CheckpointUnusable, CorruptData, NotSerializable
from emberflow.events.key_groups import KeyGroups
from emberflow.savepoints import Savepoint
from emberflow.savepoints.form import MANIFEST, FrameKind, checksum_of
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.writer import SavepointWriter

KEYS = st.one_of(st.text(max_size=8), st.integers(), st.tuples(st.text(max_size=3), st.integers()), st.none())
VALUES = st.dictionaries(
    st.sampled_from(["count", "seen", "memory"]),
    st.one_of(st.integers(), st.lists(st.text(max_size=5), max_size=3), st.binary(max_size=50)),
    min_size=1,
)
TIMERS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), KEYS), max_size=10)


def writer_to(path: Path, max_parallelism: int = 64) -> SavepointWriter:
    return SavepointWriter(
        path, job_name="job", job_id="id", engine="local", max_parallelism=max_parallelism, epoch=7
    )


def small(path: Path) -> Path:
    with writer_to(path) as writer:
        writer.source("numbers", [[3, 2], "a"], [False, True])
        step = writer.step("totals", "sum")
        step.clock(10, {"numbers > totals[0]": [12, 10]}, ended=False)
        step.clock(8, {"numbers > totals[0]": [11, 15]}, ended=True)
        for number in range(100):
            step.entry(f"key-{number}", {"sum": number})
        step.timer(FrameKind.EVENT_TIMERS, 50, "key-1")
        step.parked("key-2", "act")
        writer.sinks(["sink"])
        writer.prepared("id", 7, {"sink": [["a", "b"]], "empty": []})
    return path


def test_a_savepoint_describes_its_contents(tmp_path: Path) -> None:
    savepoint = Savepoint.read(small(tmp_path / "s"))
    savepoint.check()

    manifest = savepoint.manifest
    assert (manifest.job_name, manifest.engine, manifest.epoch, manifest.max_parallelism) == (
        "job",
        "local",
        7,
        64,
    )
    assert savepoint.sources["numbers"].positions == [[3, 2], "a"]
    assert savepoint.sources["numbers"].ended == [False, True]
    summary = savepoint.step("totals").summary
    assert (summary.kind, summary.keys, summary.event_timers, summary.parked) == ("sum", 100, 1, 1)
    # Event time of a step is the lowest of its parts; it has ended when all have.
    assert (summary.watermark, summary.ended) == (8, False)
    assert summary.channels == {"numbers > totals[0]": [11, 10]}
    reader = SavepointReader(tmp_path / "s")
    assert reader.prepared() == ("id", 7, {"sink": [["a", "b"]]})
    assert list(reader.parked("totals")) == [("key-2", "act")]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=40), TIMERS, st.sampled_from([1, 7, 64]))
def test_random_state_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    entries: dict[Any, dict[str, Any]],
    timers: list[tuple[int, Any]],
    groups: int,
) -> None:
    path = tmp_path_factory.mktemp("random") / "s"
    with writer_to(path, groups) as writer:
        step = writer.step("step", "agent")
        for key, values in entries.items():
            step.entry(key, values)
        for time_ms, key in timers:
            step.timer(FrameKind.PROCESSING_TIMERS, time_ms, key)

    reader = SavepointReader(path)
    assert dict(reader.entries("step")) == entries
    assert Counter(reader.timers("step", FrameKind.PROCESSING_TIMERS)) == Counter(timers)
    numbers = KeyGroups(groups)
    in_frames: Counter[Any] = Counter()
    for frame in reader.frames("step"):
        if frame.kind is FrameKind.ENTRIES:
            in_frames[frame.group] += frame.count
    assert in_frames == Counter(numbers[key] for key in entries), "every key is in its own group, once"
    for key, values in entries.items():
        assert Savepoint.read(path).step("step").get(key) == values


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=30),
    st.dictionaries(st.text(max_size=4), st.one_of(st.none(), VALUES), max_size=10),
)
def test_random_changes_keep_everything_else(
    tmp_path_factory: pytest.TempPathFactory,
    entries: dict[str, dict[str, Any]],
    changes: dict[str, dict[str, Any] | None],
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    with writer_to(folder / "before") as writer:
        step = writer.step("step", "agent")
        for key, values in entries.items():
            step.entry(key, values)
        step.timer(FrameKind.EVENT_TIMERS, 5, "kept")
        writer.whole_file("calls/1.calls", b"answers")

    savepoint = Savepoint.read(folder / "before")
    expected = dict(entries)
    for key, values in changes.items():
        if values is not None:
            savepoint.step("step").set(key, values)
            expected[key] = values
        elif key in expected:
            savepoint.step("step").delete(key)
            del expected[key]
    assert dict(savepoint.step("step").items()) == expected
    savepoint.write(folder / "after")

    after = SavepointReader(folder / "after")
    assert dict(after.entries("step")) == expected
    assert after.manifest.steps["step"].keys == len(expected)
    assert list(after.timers("step", FrameKind.EVENT_TIMERS)) == [(5, "kept")]
    assert list(after.call_files()) == [("1.calls", b"answers")]
    assert dict(SavepointReader(folder / "before").entries("step")) == entries


def test_much_state_is_written_in_several_files(tmp_path: Path) -> None:
    with writer_to(tmp_path / "s") as writer:
        step = writer.step("step", "agent")
        for number in range(400):
            step.entry(number, {"text": bytes(100_000)})
        assert writer.buffered < 64 << 20
    reader = SavepointReader(tmp_path / "s")
    assert len(reader.manifest.steps["step"].files) > 1
    assert sorted(key for key, _ in reader.entries("step")) == list(range(400))


@pytest.mark.parametrize("name", ["state/000-00000.state", "prepared.bin"])
@pytest.mark.parametrize("harm", ["flipped", "cut", "gone"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, harm: str) -> None:
    path = small(tmp_path / "s") / name
    data = path.read_bytes()
    if harm == "flipped":
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    elif harm == "cut":
        path.write_bytes(data[:-1])
    else:
        path.unlink()
    with pytest.raises(CorruptData) as caught:
        Savepoint.read(tmp_path / "s").check()
    assert name in str(caught.value)
    assert "what to do: " in str(caught.value)


def test_a_manifest_that_was_edited_by_hand_is_rejected(tmp_path: Path) -> None:
    path = small(tmp_path / "s") / MANIFEST
    path.write_text(path.read_text().replace('"epoch": 7', '"epoch": 8'))
    with pytest.raises(CorruptData, match="was changed or is corrupted"):
        Savepoint.read(tmp_path / "s")
    path.write_text("{")
    with pytest.raises(CorruptData, match="is not the manifest of a savepoint"):
        Savepoint.read(tmp_path / "s")


def test_a_newer_format_is_rejected(tmp_path: Path) -> None:
    path = small(tmp_path / "s") / MANIFEST
    body = {**json.loads(path.read_text()), "format": 99}
    del body["checksum"]
    path.write_text(json.dumps({**body, "checksum": checksum_of(body)}))
    with pytest.raises(CheckpointUnusable, match="newer version of emberflow"):
        Savepoint.read(tmp_path / "s")


def test_no_savepoint_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnusable, match="there is no savepoint in"):
        Savepoint.read(tmp_path)


def test_a_failure_leaves_nothing_and_nothing_is_replaced(tmp_path: Path) -> None:
    with pytest.raises(NotSerializable, match="the state of key 'ann' cannot be stored"):  # noqa: SIM117
        with writer_to(tmp_path / "s") as writer:
            writer.step("step", "agent").entry("ann", {"lock": _lock()})
    assert list(tmp_path.iterdir()) == []
    small(tmp_path / "s")
    before = (tmp_path / "s" / MANIFEST).read_bytes()
    with pytest.raises(CheckpointUnusable, match="exists already"):
        small(tmp_path / "s")
    assert (tmp_path / "s" / MANIFEST).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def _lock() -> Any:
    import threading

    return threading.Lock()
