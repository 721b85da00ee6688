"""Keyed state in SQLite: a checkpoint is one transaction that writes the keys that changed.

Keys are found by their stable hash; a row holds all keys of one hash, because equal keys may pickle differently.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emberflow.engines.local.checkpoints import Checkpoint, unusable
from emberflow.engines.ownership import Fence
from emberflow.events.codecs import decode, encode
from emberflow.events.key_groups import stable_hash
from emberflow.events.private_files import make_folders, open_private
from emberflow.operators.scope import EntryLoader, Scope
from emberflow.state.entry import Entry
from emberflow.state.pages import PageStore

SQLITE_FILE = "state.db"
_ADOPTED_AT_ONCE = 10_000
_CACHED_ENTRIES = 200_000
"""Clean entries above this number leave memory after a checkpoint."""


class SqliteCheckpoints:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fence = Fence()
        try:
            make_folders(directory)
            # SQLite gives its other files the mode of this one.
            os.close(open_private(directory / SQLITE_FILE, os.O_RDWR | os.O_CREAT))
            self._db = sqlite3.connect(directory / SQLITE_FILE, isolation_level=None, check_same_thread=False)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.execute("create table if not exists checkpoint(id integer primary key, data blob)")
            self._db.execute(
                "create table if not exists entries(uid text, hash integer, data blob, primary key(uid, hash))"
                " without rowid"
            )
            self._db.execute("create table if not exists pages(number integer primary key, data blob)")
            self._db.execute(
                "create table if not exists owner(id integer primary key, fencing_epoch integer)"
            )
        except (OSError, sqlite3.Error) as error:
            raise unusable(directory, error) from error

    def own(self, fence: Fence) -> None:
        self._fence = fence
        with self._transaction():
            self._check_owner()
            self._db.execute("insert or replace into owner values(1, ?)", (fence.epoch,))

    def _check_owner(self) -> None:
        """Inside of a transaction, so that no other start can come in between."""
        row = self._db.execute("select fencing_epoch from owner where id = 1").fetchone()
        if row is not None and row[0] > self._fence.epoch:
            raise self._fence.lost()

    def load(self) -> Checkpoint | None:
        row = self._db.execute("select data from checkpoint where id = 1").fetchone()
        return None if row is None else decode(row[0])

    def entries(self, uid: str) -> dict[Any, Entry]:
        return {}

    def loader(self, uid: str) -> EntryLoader | None:
        return _Loader(self._db, uid)

    def pages(self) -> PageStore | None:
        return _Pages(self._db)

    def save(self, checkpoint: Checkpoint, scopes: dict[str, list[Scope]]) -> int:
        data = encode(checkpoint)
        size = len(data)
        self._fence.check()
        with self._transaction():
            self._check_owner()
            for uid, tasks in scopes.items():
                for scope in tasks:
                    size += self._save_scope(uid, scope)
            self._db.execute("insert or replace into checkpoint(id, data) values(1, ?)", (data,))
        return size

    def adopt(self, steps: dict[str, Iterator[tuple[Any, Entry]]]) -> None:
        # A start that was broken off before its first checkpoint may have left something.
        with self._transaction():
            self._db.execute("delete from entries")
            self._db.execute("delete from pages")
            for uid, entries in steps.items():
                changed: dict[Any, Entry | None] = {}
                for key, entry in entries:
                    changed[key] = entry
                    if len(changed) >= _ADOPTED_AT_ONCE:
                        self._write(uid, changed)
                        changed = {}
                self._write(uid, changed)

    def stored_entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]] | None:
        return self._rows(uid)

    def _rows(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        for (data,) in self._db.execute("select data from entries where uid = ? order by hash", (uid,)):
            yield from decode(data).items()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        try:
            self._db.execute("begin immediate")
            yield
            self._db.execute("commit")
        except sqlite3.Error as error:
            raise unusable(self._directory, error) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("rollback")

    def _save_scope(self, uid: str, scope: Scope) -> int:
        changed: dict[Any, Entry | None] = dict.fromkeys(scope.removed)
        changed.update((key, entry or None) for key, entry in scope.entries.items() if entry.dirty)
        size = self._write(uid, changed)
        scope.removed.clear()
        for entry in scope.entries.values():
            entry.dirty = False
        if len(scope.entries) > _CACHED_ENTRIES:
            scope.entries.clear()
        return size

    def _write(self, uid: str, changed: dict[Any, Entry | None]) -> int:
        pages, size = _Pages(self._db), 0
        by_hash: dict[int, dict[Any, Entry | None]] = {}
        for key, entry in changed.items():
            by_hash.setdefault(stable_hash(key), {})[key] = entry
        for digest, keys in by_hash.items():
            stored = _row(self._db, uid, digest)
            for key, entry in keys.items():
                if entry is None:
                    stored.pop(key, None)
                else:
                    entry.write_pages(pages)
                    stored[key] = dict(entry)
            if stored:
                data = encode(stored)
                size += len(data)
                self._db.execute("insert or replace into entries values(?, ?, ?)", (uid, digest, data))
            else:
                self._db.execute("delete from entries where uid = ? and hash = ?", (uid, digest))
        return size + pages.written

    def close(self) -> None:
        self._db.close()


class _Pages:
    """Pages of all steps; their numbers are SQLite's row numbers."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.written = 0

    def get_page(self, number: int) -> bytes | None:
        row = self._db.execute("select data from pages where number = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def put_page(self, number: int | None, data: bytes) -> int:
        made = self._db.execute("insert or replace into pages values(?, ?)", (number, data)).lastrowid
        assert made is not None
        self.written += len(data)
        return made

    def remove_page(self, number: int) -> None:
        self._db.execute("delete from pages where number = ?", (number,))


class _Loader:
    def __init__(self, db: sqlite3.Connection, uid: str) -> None:
        self._db = db
        self._uid = uid

    def load(self, key: Any) -> Entry | None:
        found = _row(self._db, self._uid, stable_hash(key)).get(key)
        return None if found is None else Entry(found)


def _row(db: sqlite3.Connection, uid: str, digest: int) -> dict[Any, dict[str, Any]]:
    row = db.execute("select data from entries where uid = ? and hash = ?", (uid, digest)).fetchone()
    return {} if row is None else decode(row[0])
