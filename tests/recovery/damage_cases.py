"""What a damaged file of a job leads to: the table in docs/durability.md, and what the tests expect.

`docs/durability.md` holds `table()`; `tests/docs/test_damage_table.py` compares them, `tests/recovery/test_damage.py` damages
every file listed here between two starts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

SAME = "same results"
"""The job goes on as if nothing had happened: same output, no recorded call made again."""
REFUSED = "`CorruptData`"
"""The job does not start; the error names the file, or the folder it was in."""
SINK = "`SinkMismatch`"
EITHER = f"{SINK}, or `SinkFailed`"
"""The same, from the sink."""
"""Depends on whether the newest checkpoint has output to commit."""
DAMAGES = ("flip", "cut", "empty", "delete")
LOCAL = ("local-memory", "local-sqlite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file, and what becomes of a job when one bit of it is flipped, half of it is cut off, all of it, or it is
    deleted."""

    file: str
    pattern: str
    """Of the newest such file, below the job's folder."""
    outcomes: tuple[str, str, str, str]
    hosts: tuple[str, ...] = LOCAL
    note: str = ""
    before: Callable[[Path], object] | None = None
    """What another moment of the kill would have left."""

    def newest(self, folder: Path) -> Path:
        if self.before is not None:
            self.before(folder)
        return sorted(folder.glob(self.pattern))[-1]


def _into_the_database(folder: Path) -> None:
    """SQLite moves pages from its log into the database now and then."""
    with closing(sqlite3.connect(folder / "checkpoints" / "state.db")) as db:
        db.execute("pragma wal_checkpoint(truncate)")


def _decided(folder: Path) -> None:
    """Killed when all files of the epoch were renamed, before the ledger said so."""
    newest = sorted(folder.glob("output/_emberflow/*/*.done"))[-1]
    newest.rename(newest.with_name(f"{newest.stem}-000001.json"))


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
        note="written anew from the program",
    ),
    Kind(
        file="`latest.json`",
        pattern="checkpoints/latest.json",
        outcomes=(REFUSED, REFUSED, REFUSED, SAME),
        hosts=LOCAL,
        note="only says which checkpoint is the newest",
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
        note="pages that `state.db-wal` holds as well do no harm",
        before=_into_the_database,
    ),
    Kind(file="`state.db-wal`", pattern="checkpoints/state.db-wal", outcomes=ALL_REFUSED, hosts=LOCAL[1:]),
    Kind(
        file="`state.db-shm`",
        pattern="checkpoints/state.db-shm",
        outcomes=ALL_SAME,
        hosts=LOCAL[1:],
        note="SQLite makes it anew",
    ),
    Kind(
        file="`history.jsonl`",
        pattern="checkpoints/history.jsonl",
        outcomes=ALL_SAME,
        note="for people; lines that cannot be read are left out",
    ),
    Kind(file="`calls/*.calls`", pattern="checkpoints/calls/*.calls", outcomes=ALL_REFUSED),
    Kind(
        file="`calls/*.lease`",
        pattern="checkpoints/calls/*.lease",
        outcomes=ALL_SAME,
        note="less is known of what a crash may have torn",
    ),
    Kind(
        file="`calls.json`",
        pattern="checkpoints/calls.json",
        outcomes=ALL_SAME,
        note="only says that `calls/` was written",
    ),
    Kind(
        file="file sink: `_emberflow/*/*.done`, newest",
        pattern="output/_emberflow/*/*.done",
        outcomes=(SAME, SAME, SAME, EITHER),
        hosts=LOCAL,
        note="only its name counts",
    ),
    Kind(
        file="file sink: `_emberflow/*/*.json`, an epoch that is being committed",
        pattern="output/_emberflow/*/[0-9]*.json",
        outcomes=(REFUSED, REFUSED, REFUSED, EITHER),
        hosts=LOCAL,
        before=_decided,
    ),
    Kind(
        file="`dead-letters/*/letters/*.jsonl`",
        pattern="checkpoints/dead-letters/*/letters/*.jsonl",
        outcomes=ALL_SAME,
        note="output of the job; what reads it names the file",
    ),
)

REFUSED_ON_SPARK = (
    ("checkpoints/emberflow.json", "flip"),
    ("checkpoints/emberflow.json", "delete"),
    ("checkpoints/starts", "flip"),
    ("checkpoints/starts", "delete"),
    ("checkpoints/wiring.json", "flip"),
    ("checkpoints/wiring.json", "delete"),
    ("checkpoints/channels.json", "flip"),
    ("checkpoints/channels.json", "delete"),
    ("checkpoints/calls/*.calls", "flip"),
    ("checkpoints/spark/metadata", "flip"),
    ("checkpoints/spark/offsets/[0-9]*", "flip"),
    ("checkpoints/spark/offsets/[0-9]*", "empty"),
    ("checkpoints/spark/commits/[0-9]*", "cut"),
    ("checkpoints/spark/state/*/*/*.changelog", "flip"),
)
"""(file, damage), each in a start of its own"""
HARMLESS_ON_SPARK = (
    ("checkpoints/history.jsonl", "cut"),
    ("checkpoints/calls/*.lease", "flip"),
    ("checkpoints/calls.json", "delete"),
    ("checkpoints/dead-letters/*/letters/*.jsonl", "cut"),
)
"""All of them in one start."""


def table() -> str:
    """As Markdown."""
    lines = ["| file | a bit flipped | cut in half | emptied | deleted | |", "|---|---|---|---|---|---|"]
    lines += [f"| {kind.file} | {' | '.join(kind.outcomes)} | {kind.note} |" for kind in KINDS]
    return "\n".join(lines)
