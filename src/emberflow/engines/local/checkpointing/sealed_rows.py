"""SQLite rows with a checksum each, and one over all of them: SQLite itself does not detect a changed byte.

A row's checksum covers its location, so a row in the wrong place is detected too. The sum of all checksums is stored with
every transaction: rows that are missing, or come from another transaction than the rest, do not add up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from emberflow.errors import CheckpointError, CorruptData, describe_cause

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR)
"""The last one is an error in a statement; the statements never change, so the tables must have."""
_TABLES = {
    "checkpoint": "(id integer primary key, data blob, crc integer)",
    "entries": "(uid text, hash integer, data blob, crc integer, primary key(uid, hash)) without rowid",
    "pages": "(number integer primary key, data blob, crc integer)",
}
_ALL = (
    "select 'checkpoint', id, data, crc from checkpoint union all"
    " select uid, hash, data, crc from entries union all select 'pages', number, data, crc from pages"
)
_COUNTER = 0
"""The page that holds the first page number that was never used."""
LOST = (
    "restore state.db from a backup taken while the job was stopped; without one, start with an empty checkpoint directory"
    " and another output folder, from the last savepoint if there is one"
)


class SealedRows:
    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._sum = 0
        self._count = 0
        self._next_page: int | None = None
        """The first page number that was never used, while a transaction uses pages."""
        self.fence = 0
        """The fencing epoch of the start that wrote the checkpoint."""

    def prepare(self) -> None:
        """Creates the tables; adds checksums to those of the previous version."""
        for table, columns in _TABLES.items():
            self._db.execute(f"create table if not exists {table}{columns}")
        old = [
            table
            for table in _TABLES
            if "crc" not in {row[1] for row in self._db.execute(f"pragma table_info({table})")}
        ]
        if old:
            self._db.create_function("seal", 3, _seal, deterministic=True)
            self._db.execute("begin immediate")
            for table in old:
                place = {"checkpoint": "'checkpoint', id", "entries": "uid, hash", "pages": "'pages', number"}
                self._db.execute(f"alter table {table} add column crc integer")
                self._db.execute(f"update {table} set crc = seal({place[table]}, data)")
        self._db.execute(
            "create table if not exists sums(id integer primary key, sum integer, rows integer, fence integer)"
        )
        if self._db.execute("select id from sums").fetchone() is None:
            self._sum, self._count = self._added_up() if old else (0, 0)
            self.store_sum()
        if self._db.in_transaction:
            self._db.execute("commit")

    def verify(self) -> None:
        """Reads everything once. Raises CorruptData."""
        with self.reading():
            self.load_sum()
            if self._added_up() != (self._sum, self._count):
                raise self._corrupt("rows are missing or belong to another checkpoint")

    def _added_up(self) -> tuple[int, int]:
        total, count = 0, 0
        for name, number, data, crc in self._db.execute(_ALL):
            self._check(name, number, data, crc)
            total ^= crc
            count += 1
        return total, count

    # in a transaction

    def load_sum(self) -> None:
        row = self._db.execute("select sum, rows, fence from sums where id = 1").fetchone()
        if row is None:
            raise self._corrupt("it does not say how many rows there are")
        self._sum, self._count, self.fence = row
        self._next_page = None

    def store_sum(self) -> None:
        if self._next_page is not None:
            self._put_page(_COUNTER, self._next_page.to_bytes(8, "big"))
        self._db.execute(
            "insert or replace into sums values(1, ?, ?, ?)", (self._sum, self._count, self.fence)
        )

    def _counted(self, before: int | None, after: int | None) -> None:
        for crc, step in ((before, -1), (after, 1)):
            if crc is not None:
                self._sum ^= crc
                self._count += step

    # the checkpoint

    def checkpoint(self) -> bytes | None:
        with self.reading():
            row = self._db.execute("select data, crc from checkpoint where id = 1").fetchone()
            return None if row is None else self._check("checkpoint", 1, *row)

    def put_checkpoint(self, data: bytes, fence: int) -> None:
        self.fence = fence
        before = self._db.execute("select crc from checkpoint where id = 1").fetchone()
        crc = _seal("checkpoint", 1, data)
        self._db.execute("insert or replace into checkpoint values(1, ?, ?)", (data, crc))
        self._counted(None if before is None else before[0], crc)

    # entries

    def entry(self, uid: str, digest: int) -> tuple[bytes, int] | None:
        """The row and its checksum, which `put_entry` needs."""
        with self.reading():
            query = "select data, crc from entries where uid = ? and hash = ?"
            row = self._db.execute(query, (uid, digest)).fetchone()
            return None if row is None else (self._check(uid, digest, *row), row[1])

    def entries(self, uid: str) -> Iterator[bytes]:
        with self.reading():
            rows = self._db.execute("select hash, data, crc from entries where uid = ? order by hash", (uid,))
            for digest, data, crc in rows:
                yield self._check(uid, digest, data, crc)

    def put_entry(self, uid: str, digest: int, data: bytes | None, before: int | None) -> None:
        crc = None if data is None else _seal(uid, digest, data)
        if data is None:
            self._db.execute("delete from entries where uid = ? and hash = ?", (uid, digest))
        else:
            self._db.execute("insert or replace into entries values(?, ?, ?, ?)", (uid, digest, data, crc))
        self._counted(before, crc)

    # pages

    def page(self, number: int) -> bytes | None:
        with self.reading():
            row = self._db.execute("select data, crc from pages where number = ?", (number,)).fetchone()
            return None if row is None else self._check("pages", number, *row)

    def put_page(self, number: int | None, data: bytes) -> int:
        made = self.reserve_pages(1) if number is None else number
        self._put_page(made, data)
        return made

    def reserve_pages(self, count: int) -> int:
        """Numbers for new pages; returns the first one. They are counted, because some are reserved long before use."""
        first = self._next_page
        if first is None:
            stored = self.page(_COUNTER)
            # The version before took the next number after the last one.
            last = "select coalesce(max(number), 0) from pages"
            first = (
                self._db.execute(last).fetchone()[0] + 1 if stored is None else int.from_bytes(stored, "big")
            )
        self._next_page = first + count
        return first

    def _put_page(self, number: int, data: bytes) -> None:
        before = self._page_crc(number)
        crc = _seal("pages", number, data)
        self._db.execute("insert or replace into pages values(?, ?, ?)", (number, data, crc))
        self._counted(before, crc)

    def remove_page(self, number: int) -> None:
        self._counted(self._page_crc(number), None)
        self._db.execute("delete from pages where number = ?", (number,))

    def _page_crc(self, number: int | None) -> int | None:
        row = self._db.execute("select crc from pages where number = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def clear(self) -> None:
        for table in ("entries", "pages"):
            self._db.execute(f"delete from {table}")
        self._sum, self._count = self._added_up()

    # errors

    def _check(self, name: str, number: int, data: bytes, crc: int | None) -> bytes:
        if not isinstance(data, bytes) or crc != _seal(name, number, data):
            what = (
                "the checkpoint"
                if name == "checkpoint"
                else "a page"
                if name == "pages"
                else f"step {name!r}"
            )
            raise self._corrupt(f"a row of {what} does not match its checksum")
        return data

    @contextmanager
    def reading(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self.explained(error) from error

    def explained(self, error: sqlite3.Error) -> CheckpointError | sqlite3.Error:
        """CorruptData if the file is damaged, else the error itself."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        # Text that cannot be decoded, as a flipped bit leaves it, has no error code.
        if code in _DAMAGED or "Could not decode" in str(error):
            return self._corrupt(describe_cause(error))
        return error

    def _corrupt(self, cause: str) -> CorruptData:
        return CorruptData(f"{self._path} is corrupted", cause=cause, way_out=LOST)


def _seal(name: str, number: int, data: bytes) -> int:
    return crc32(data, crc32(f"{name}\0{number}".encode()))
