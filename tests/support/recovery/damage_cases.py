"""What a damaged file of a job leads to: the table in docs/durability.md, and what the tests expect.

`docs/durability.md` contains `table()`; `tests/docs/test_damage_table.py` compares them, `tests/recovery/test_damage.py`
damages every file listed here between two starts, or names the test that does. `uncovered` finds files without a row.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SAME = "same results"
"""The job continues as if nothing had happened: same output, no recorded call made again."""
REFUSED = "`CorruptData`"
"""The job does not start; the error names the file, or the folder it was in."""
SINK = "`SinkMismatch`"
"""The same, from the sink."""
EITHER = f"{SINK}, or `SinkFailed`"
"""Depends on whether the newest checkpoint has output to commit."""
SOURCE = "`SourceFailed`"
APPROVALS = "`ApprovalsFailed`"
OPEN = "the question is open again"
UNUSABLE = "`CheckpointUnusable`"
DAMAGES = ("flip", "cut", "empty", "delete")
LOCAL = ("local-memory", "local-sqlite")
SINKS = ("output", "checkpoints/dead-letters/*/letters")
"""Folders of file sinks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file, and what happens to a job when one bit of it is flipped, or it is truncated to half, emptied or
    deleted."""

    file: str
    pattern: str
    """The newest such file, below the job's folder."""
    outcomes: tuple[str, ...]
    hosts: tuple[str, ...] = LOCAL
    """The hosts on which `test_damage.py` damages one; empty if another test does."""
    test: str = ""
    """That other test."""
    covers: tuple[str, ...] = ()
    """Patterns of other files that are treated alike."""
    note: str = ""
    before: Callable[[Path], object] | None = None
    """Creates what another moment of the kill would have left."""

    def newest(self, folder: Path) -> Path:
        if self.before is not None:
            self.before(folder)
        return sorted(folder.glob(self.pattern))[-1]


def _into_the_database(folder: Path) -> None:
    """SQLite moves pages from its log into the database from time to time."""
    with closing(sqlite3.connect(folder / "checkpoints" / "state.db")) as db:
        db.execute("pragma wal_checkpoint(truncate)")


def _decided(folder: Path) -> None:
    """Killed after all files of the epoch were renamed, before the ledger recorded it."""
    newest = sorted(folder.glob("output/.emberflow/*/*.done"))[-1]
    newest.rename(newest.with_name(f"{newest.stem}-000001.json"))


def _marked(folder: Path) -> None:
    """The same, and the mark next to the staged files still exists."""
    _decided(folder)
    entry = sorted(folder.glob("output/.emberflow/*/[0-9]*.json"))[-1]
    staging = sorted(entry.parent.glob("inprogress-*"))[-1]
    (staging / f"{entry.name[:8]}-0000-0.decided").touch()


def _not_renamed(folder: Path) -> None:
    """Killed after the epoch was decided, before any of its files was renamed."""
    _decided(folder)
    entry = sorted(folder.glob("output/.emberflow/*/[0-9]*.json"))[-1]
    staging = sorted(entry.parent.glob("inprogress-*"))[-1]
    for later in staging.iterdir():
        later.unlink()
    for name, final, *_ in json.loads(entry.read_bytes())["renames"]:
        (folder / "output" / final).rename(staging / name)


_SAVEPOINTS = "tests/recovery/test_savepoint_damage.py"
ALL_REFUSED = (REFUSED,) * 4
ALL_SAME = (SAME,) * 4

KINDS = (
    Kind(file="`emberflow.json`", pattern="checkpoints/emberflow.json", outcomes=ALL_REFUSED),
    Kind(file="`starts`", pattern="checkpoints/starts", outcomes=ALL_REFUSED),
    Kind(
        file="`wiring.json`",
        pattern="checkpoints/wiring.json",
        outcomes=(REFUSED, REFUSED, REFUSED, SAME),
        hosts=LOCAL,
        note="rewritten from the program",
    ),
    Kind(
        file="`latest.json`",
        pattern="checkpoints/latest.json",
        outcomes=(REFUSED, REFUSED, REFUSED, SAME),
        hosts=LOCAL,
        note="only names the newest checkpoint",
    ),
    Kind(
        file="`local/chk-*.ckpt`, newest",
        pattern="checkpoints/local/chk-*.ckpt",
        outcomes=ALL_REFUSED,
        hosts=LOCAL[:1],
    ),
    Kind(
        file="`state.db`",
        pattern="checkpoints/state.db",
        outcomes=ALL_REFUSED,
        hosts=LOCAL[1:],
        note="pages that are also in `state.db-wal` cause no harm",
        before=_into_the_database,
    ),
    Kind(file="`state.db-wal`", pattern="checkpoints/state.db-wal", outcomes=ALL_REFUSED, hosts=LOCAL[1:]),
    Kind(
        file="`state.db-shm`",
        pattern="checkpoints/state.db-shm",
        outcomes=ALL_SAME,
        hosts=LOCAL[1:],
        note="recreated by SQLite",
    ),
    Kind(
        file="`history.jsonl`",
        pattern="checkpoints/history.jsonl",
        outcomes=ALL_SAME,
        note="informational; unreadable lines are skipped",
    ),
    Kind(file="`calls/*.calls`", pattern="checkpoints/calls/*.calls", outcomes=ALL_REFUSED),
    Kind(
        file="`calls/*.lease`",
        pattern="checkpoints/calls/*.lease",
        outcomes=ALL_SAME,
        note="less is known about what a crash may have truncated",
    ),
    Kind(
        file="`calls.json`",
        pattern="checkpoints/calls.json",
        outcomes=ALL_SAME,
        note="only records that `calls/` was written",
    ),
    Kind(
        file="`call-store.json`",
        pattern="checkpoints/call-store.json",
        outcomes=ALL_SAME,
        hosts=(),
        test="tests/contracts/test_savepoints_on_stores.py",
        note="rewritten by each start; `emberflow savepoint create` rejects a corrupted one",
    ),
    Kind(
        file="`calls/decisions/*`",
        pattern="checkpoints/calls/decisions/*",
        outcomes=(REFUSED, REFUSED, REFUSED, REFUSED),
        hosts=(),
        test="tests/recovery/test_damage_on_spark.py",
        note="of the last micro-batch; a deleted one is detected if output of the batch was being committed, and needed only then",
    ),
    Kind(
        file="`owners/lock`",
        pattern="checkpoints/owners/lock",
        outcomes=ALL_SAME,
        covers=("checkpoints/dead-letters/*/redrive/.lock",),
        note="only the lock on it matters",
    ),
    Kind(
        file="`owners/*.json`, newest",
        pattern="checkpoints/owners/[0-9]*.json",
        outcomes=ALL_SAME,
        note="only its name matters, and `starts` has the number too",
    ),
    Kind(
        file="`channels.json`",
        pattern="checkpoints/channels.json",
        outcomes=ALL_REFUSED,
        hosts=(),
        test="tests/recovery/test_damage_on_spark.py",
        note="Spark",
    ),
    Kind(
        file="`sinks.json`",
        pattern="checkpoints/sinks.json",
        outcomes=(REFUSED, REFUSED, REFUSED, SAME),
        hosts=(),
        test="tests/recovery/test_damage_on_spark.py",
        note="Spark; without it, the sinks' committed output is assumed to be complete",
    ),
    Kind(
        file="`limits/*`",
        pattern="checkpoints/limits/*",
        outcomes=ALL_SAME,
        hosts=(),
        test="tests/unit/engines/job/test_limit_ledger.py",
        note="Spark; limits start over",
    ),
    Kind(
        file="`client/*`, `hold`",
        pattern="checkpoints/client/*",
        outcomes=ALL_SAME,
        hosts=(),
        test="tests/recovery/test_damage_on_spark.py",
        covers=("checkpoints/hold",),
        note="Spark; removed by the next start",
    ),
    Kind(
        file="`approvals/*.question.json`",
        pattern="checkpoints/approvals/*.question.json",
        outcomes=(APPROVALS, APPROVALS, APPROVALS, SAME),
        hosts=(),
        test="tests/recovery/test_desk_damage.py",
        note="asked again; it then expires relative to the new start",
    ),
    Kind(
        file="`approvals/*.answer.json`",
        pattern="checkpoints/approvals/*.answer.json",
        outcomes=(APPROVALS, APPROVALS, APPROVALS, OPEN),
        hosts=(),
        test="tests/recovery/test_desk_damage.py",
    ),
    Kind(
        file="`approvals/history.jsonl`",
        pattern="checkpoints/approvals/history.jsonl",
        outcomes=ALL_SAME,
        hosts=(),
        test="tests/unit/approvals/test_question_damage.py",
        note="informational; lines that fail their checksum are skipped",
    ),
    Kind(
        file="`dead-letters/*/redrive/*.json`",
        pattern="checkpoints/dead-letters/*/redrive/*.json",
        outcomes=(SOURCE,) * 4,
        hosts=(),
        test="tests/recovery/test_desk_damage.py",
        note="one that the job has read and committed may be deleted",
    ),
    Kind(
        file="`dead-letters/*/redrive/.next`",
        pattern="checkpoints/dead-letters/*/redrive/.next",
        outcomes=(REFUSED, REFUSED, REFUSED, SAME),
        hosts=(),
        test="tests/recovery/test_desk_damage.py",
        note="detected when the job, or `emberflow dead-letters redrive`, looks for the next request",
    ),
    Kind(
        file="file sink: `.emberflow/*/ledger.json`",
        pattern="output/.emberflow/*/ledger.json",
        outcomes=ALL_REFUSED,
    ),
    Kind(
        file="file sink: `.emberflow/*/inprogress-*/*`, prepared in the newest checkpoint",
        pattern="output/.emberflow/*/inprogress-*/[0-9]*",
        outcomes=(REFUSED, REFUSED, REFUSED, "`SinkFailed`"),
        hosts=(),
        test="tests/unit/connectors/files/test_staged_damage.py",
        note="files that are in no checkpoint are not needed",
    ),
    Kind(
        file="file sink: the same, of an epoch that is being committed",
        pattern="output/.emberflow/*/inprogress-*/[0-9]*",
        outcomes=(REFUSED, REFUSED, REFUSED, "`SinkFailed`"),
        before=_not_renamed,
        note="if its `.decided` exists, a missing one counts as visible and moved by a reader",
    ),
    Kind(
        file="file sink: `.emberflow/*/inprogress-*/*.decided`",
        pattern="output/.emberflow/*/inprogress-*/*.decided",
        outcomes=ALL_SAME,
        before=_marked,
        note="needed only for files that a reader moves away",
    ),
    Kind(
        file="file sink: `.emberflow/*/*.done`, newest",
        pattern="output/.emberflow/*/*.done",
        outcomes=(SAME, SAME, SAME, EITHER),
        hosts=LOCAL,
        note="only its name matters",
    ),
    Kind(
        file="file sink: `.emberflow/*/*.json`, an epoch that is being committed",
        pattern="output/.emberflow/*/[0-9]*.json",
        outcomes=(REFUSED, REFUSED, REFUSED, EITHER),
        hosts=LOCAL,
        before=_decided,
    ),
    Kind(
        file="`dead-letters/*/letters/*.jsonl`",
        pattern="checkpoints/dead-letters/*/letters/*.jsonl",
        outcomes=ALL_SAME,
        note="output of the job; readers name the file in their error",
    ),
)

SAVEPOINT = tuple(
    Kind(
        file=f"savepoint: {file}",
        pattern=f"savepoint/{pattern}",
        outcomes=outcomes,
        hosts=(),
        test=_SAVEPOINTS,
    )
    for file, pattern, outcomes in (
        ("`savepoint.json`", "savepoint.json", (REFUSED, REFUSED, REFUSED, UNUSABLE)),
        ("`state/*.state`", "state/*.state", ALL_REFUSED),
        ("`prepared.bin`", "prepared.bin", ALL_REFUSED),
        ("`calls/*.calls`", "calls/*.calls", ALL_REFUSED),
    )
)
"""A job is started from a copy with one damaged file."""

NOT_OURS = ("checkpoints/spark/**", "output/*")
"""Spark's files, and parts that have become visible: those belong to their readers."""


def uncovered(folder: Path) -> list[str]:
    """Files of a job and its sinks without a row in the table."""
    known = [pattern for kind in (*KINDS, *SAVEPOINT) for pattern in (kind.pattern, *kind.covers)]
    known += [
        pattern.replace("output", sink, 1)
        for pattern in known
        for sink in SINKS
        if pattern.startswith("output/")
    ]
    files = [
        path.relative_to(folder)
        for part in ("checkpoints", "output", "savepoint")
        for path in (folder / part).rglob("*")
    ]
    names = [PurePosixPath(path) for path in files if (folder / path).is_file()]
    return [
        str(name)
        for name in names
        if not any(matches(name, pattern) for pattern in (*known, *NOT_OURS))
        # Left by a process that was killed while writing; never read.
        and not (name.name.startswith(".") and name.name.endswith(".tmp"))
    ]


def matches(name: PurePosixPath, pattern: str) -> bool:
    """Compares part by part; `**` at the end matches any number of them."""
    parts = pattern.split("/")
    if parts[-1] == "**":
        return name.parts[: len(parts) - 1] == tuple(parts[:-1])
    return len(parts) == len(name.parts) and all(map(fnmatch.fnmatchcase, name.parts, parts))


REFUSED_ON_SPARK = (
    ("checkpoints/emberflow.json", "flip"),
    ("checkpoints/emberflow.json", "delete"),
    ("checkpoints/starts", "flip"),
    ("checkpoints/starts", "delete"),
    ("checkpoints/wiring.json", "flip"),
    ("checkpoints/wiring.json", "delete"),
    ("checkpoints/channels.json", "flip"),
    ("checkpoints/channels.json", "cut"),
    ("checkpoints/channels.json", "empty"),
    ("checkpoints/channels.json", "delete"),
    ("checkpoints/sinks.json", "flip"),
    ("checkpoints/sinks.json", "cut"),
    ("checkpoints/sinks.json", "empty"),
    ("output/.emberflow/*/ledger.json", "flip"),
    ("output/.emberflow/*/ledger.json", "cut"),
    ("output/.emberflow/*/ledger.json", "empty"),
    ("output/.emberflow/*/ledger.json", "delete"),
    ("checkpoints/calls/decisions/[!.]*", "flip"),
    ("checkpoints/calls/decisions/[!.]*", "cut"),
    ("checkpoints/calls/decisions/[!.]*", "empty"),
    ("checkpoints/calls/decisions/[!.]*", "delete"),
    ("checkpoints/calls/*.calls", "flip"),
    ("checkpoints/spark/metadata", "flip"),
    ("checkpoints/spark/offsets/[0-9]*", "flip"),
    ("checkpoints/spark/offsets/[0-9]*", "empty"),
    ("checkpoints/spark/commits/[0-9]*", "cut"),
    ("checkpoints/spark/state/*/*/3.changelog", "flip"),
)
"""(file, damage), each in a separate start. Spark has committed three batches; state of the fourth is written again."""
HARMLESS_ON_SPARK = (
    ("checkpoints/history.jsonl", "cut"),
    ("checkpoints/calls/*.lease", "flip"),
    ("checkpoints/calls.json", "delete"),
    ("checkpoints/sinks.json", "delete"),
    ("checkpoints/owners/lock", "flip"),
    ("checkpoints/owners/[0-9]*.json", "empty"),
    ("output/.emberflow/*/*.done", "flip"),
    ("checkpoints/dead-letters/*/letters/*.jsonl", "cut"),
)
"""All of them in one start, with a file `hold` and an unreadable one in `client/`."""


def strike(path: Path, damage: str) -> None:
    data = path.read_bytes()
    match damage:
        case "flip":
            at = len(data) // 2
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x04]) + data[at + 1 :] if data else b"\x04")
        case "cut":
            os.truncate(path, len(data) // 2)
        case "empty":
            os.truncate(path, 0)
        case _:
            path.unlink()


def table() -> str:
    """As Markdown."""
    lines = ["| file | a bit flipped | cut in half | emptied | deleted | |", "|---|---|---|---|---|---|"]
    lines += [f"| {kind.file} | {' | '.join(kind.outcomes)} | {kind.note} |" for kind in (*KINDS, *SAVEPOINT)]
    return "\n".join(lines)
