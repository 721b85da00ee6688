"""Savepoints of every format stay readable: one that was written by each version is kept as files.

A change that fails here orphans savepoints. If it is intended, add a new version with a reader for this one; never edit the
stored files. `UPDATE = True` writes them if they are missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emberflow.savepoints import Savepoint
from emberflow.savepoints.form import FORMAT_VERSION, FrameKind
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.writer import SavepointWriter
from emberflow.state.pages import Fields, Node

FILES = Path(__file__).parent
UPDATE = False

ENTRIES = {
    "ann": {"count": 3, "seen": [1, None]},
    ("b", 2): {"memory": Fields({"profile": Node({"name": "Bob"}), "plain": {"a": 1}}), "seq": 4},
}


def write(path: Path) -> None:
    with SavepointWriter(
        path,
        job_name="golden",
        job_id="0123456789abcdef",
        engine="local",
        max_parallelism=64,
        epoch=41,
        created_ms=1_800_000_000_000,
    ) as writer:
        writer.source("numbers", [[5, 2], {"file": "a.csv", "line": 7}], [False, True])
        step = writer.step("counts", "keyed_process")
        step.clock(900, {"numbers > stamps > counts[0]": [900, 1200]}, ended=False)
        for key, values in ENTRIES.items():
            step.entry(key, values)
        step.timer(FrameKind.EVENT_TIMERS, 1_000, "ann")
        step.timer(FrameKind.PROCESSING_TIMERS, 2_000, ("b", 2))
        step.timer(FrameKind.CLEANUP, 3_000, "ann")
        step.parked(("b", 2), "judge")
        step.states({"count": "value", "seen": "list+ttl"})
        writer.sinks(["files"])
        writer.prepared("0123456789abcdef", 41, {"files": [["staged", "final"]]})
        writer.whole_file("calls/1-a.000000.calls", b"a log of calls")


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_a_stored_savepoint_is_read(version: int) -> None:
    stored = FILES / f"v{version}" / "savepoint"
    if UPDATE and not stored.exists():
        write(stored)
    reader = SavepointReader(stored)
    manifest = reader.manifest
    Savepoint.read(stored).check()
    assert (manifest.format, manifest.job_name, manifest.engine) == (version, "golden", "local")
    assert (manifest.epoch, manifest.max_parallelism, manifest.created_ms) == (41, 64, 1_800_000_000_000)
    assert manifest.sources["numbers"].positions == [[5, 2], {"file": "a.csv", "line": 7}]
    assert manifest.sources["numbers"].ended == [False, True]
    summary = manifest.steps["counts"]
    assert (summary.kind, summary.watermark, summary.ended, summary.keys) == ("keyed_process", 900, False, 2)
    assert summary.channels == {"numbers > stamps > counts[0]": [900, 1200]}
    found = dict(reader.entries("counts"))
    assert found == ENTRIES
    assert isinstance(found["b", 2]["memory"], Fields)
    assert isinstance(found["b", 2]["memory"]["profile"], Node)
    assert list(reader.timers("counts", FrameKind.EVENT_TIMERS)) == [(1_000, "ann")]
    assert list(reader.timers("counts", FrameKind.PROCESSING_TIMERS)) == [(2_000, ("b", 2))]
    # Format 3 added the times at which keys are looked at for expired state.
    cleanup = [(3_000, "ann")] if version >= 3 else []
    assert list(reader.timers("counts", FrameKind.CLEANUP)) == cleanup
    # Format 4 added the forms of states.
    assert summary.states == ({"count": "value", "seen": "list+ttl"} if version >= 4 else None)
    assert list(reader.parked("counts")) == [(("b", 2), "judge")]
    assert reader.prepared() == ("0123456789abcdef", 41, {"files": [["staged", "final"]]})
    assert list(reader.call_files()) == [("1-a.000000.calls", b"a log of calls")]


def test_the_same_files_are_written(tmp_path: Path) -> None:
    write(tmp_path / "now")
    now = {path.relative_to(tmp_path / "now") for path in (tmp_path / "now").rglob("*.*")}
    stored = FILES / f"v{FORMAT_VERSION}" / "savepoint"
    assert now == {path.relative_to(stored) for path in stored.rglob("*.*")}
    state = Path("state/000-00000.state")
    assert (tmp_path / "now" / state).read_bytes()[:5] == (stored / state).read_bytes()[:5] == b"EFSP\x01"
