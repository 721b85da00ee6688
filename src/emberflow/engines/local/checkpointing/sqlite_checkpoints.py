"""Keyed state in SQLite: a checkpoint is one transaction that writes the keys that changed.

Keys are looked up by their stable hash; a row holds all keys with one hash, because equal keys may pickle differently.
Rows carry checksums (`sealed_rows.py`), and everything is read once when a job starts.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, unusable
from emberflow.engines.local.checkpointing.latest_checkpoint import check_latest, write_latest
from emberflow.engines.local.checkpointing.sealed_rows import SealedRows
from emberflow.errors import CheckpointError, NotSerializable
from emberflow.events.codecs import decode, encode
from emberflow.events.fence import Fence
from emberflow.events.key_groups import stable_hash
from emberflow.events.private_files import make_folders, open_private
from emberflow.operators.scope import EntryLoader, Scope
from emberflow.state.blame import decode_state, unserializable_state
from emberflow.state.entry import Entry
from emberflow.state.pages import PageStore

SQLITE_FILE = "state.db"
_ADOPTED_AT_ONCE = 10_000
_CACHED_ENTRIES = 200_000
"""Clean entries above this number are evicted from memory after a checkpoint."""


class SqliteCheckpoints:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fence = Fence()
        try:
            make_folders(directory)
            # SQLite creates its other files with the mode of this one.
            os.close(open_private(directory / SQLITE_FILE, os.O_RDWR | os.O_CREAT))
            self._db = sqlite3.connect(directory / SQLITE_FILE, isolation_level=None, check_same_thread=False)
            self._rows = SealedRows(self._db, directory / SQLITE_FILE)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._rows.prepare()
            self._db.execute(
                "create table if not exists owner(id integer primary key, fencing_epoch integer)"
            )
        except (OSError, sqlite3.Error) as error:
            with suppress(AttributeError):
                self._db.close()
            raise self._explained(error) from error

    def has_checkpoint(self) -> bool:
        """Checks nothing else."""
        return self._rows.checkpoint() is not None

    def own(self, fence: Fence) -> None:
        self._fence = fence
        with self._transaction():
            self._check_owner()
            self._db.execute("insert or replace into owner values(1, ?)", (fence.epoch,))

    def _check_owner(self) -> None:
        """Called inside a transaction, so that no other start can intervene."""
        row = self._db.execute("select fencing_epoch from owner where id = 1").fetchone()
        if row is not None and row[0] > self._fence.epoch:
            raise self._fence.lost()

    def load(self) -> Checkpoint | None:
        self._rows.verify()
        data = self._rows.checkpoint()
        checkpoint: Checkpoint | None = None if data is None else decode(data)
        path = str(self._directory / SQLITE_FILE)
        at = None if checkpoint is None else (self._rows.fence, checkpoint.epoch)
        check_latest(self._directory, at, path)
        return checkpoint

    def entries(self, uid: str) -> dict[Any, Entry]:
        return {}

    def loader(self, uid: str) -> EntryLoader:
        return _Loader(self._rows, uid)

    def pages(self) -> PageStore | None:
        return _Pages(self._rows)

    def save(self, checkpoint: Checkpoint, scopes: dict[str, list[Scope]]) -> int:
        size = 0
        self._fence.check()
        with self._transaction():
            self._check_owner()
            for uid, tasks in scopes.items():
                for scope in tasks:
                    size += self._save_scope(uid, scope)
                # Again: some timers may have moved to pages.
                checkpoint.scopes[uid] = [scope.saved() for scope in tasks]
            data = encode(checkpoint)
            self._rows.put_checkpoint(data, self._fence.epoch)
        size += len(data)
        try:
            write_latest(self._directory, (self._fence.epoch, checkpoint.epoch))
        except OSError as error:
            raise unusable(self._directory, error) from error
        return size

    def adopt(self, steps: dict[str, Iterator[tuple[Any, Entry]]]) -> None:
        # A start that was interrupted before its first checkpoint may have left something.
        with self._transaction():
            self._rows.clear()
            for uid, entries in steps.items():
                changed: dict[Any, Entry | None] = {}
                for key, entry in entries:
                    changed[key] = entry
                    if len(changed) >= _ADOPTED_AT_ONCE:
                        self._write(uid, changed)
                        changed = {}
                self._write(uid, changed)

    def stored_entries(self, uid: str) -> Iterator[tuple[Any, dict[str, Any]]] | None:
        return (item for data in self._rows.entries(uid) for item in decode_state(data, uid, _as_is).items())

    @contextmanager
    def _transaction(self) -> Generator[None]:
        try:
            self._db.execute("begin immediate")
            self._rows.load_sum()
            yield
            self._rows.store_sum()
            self._db.execute("commit")
        except sqlite3.Error as error:
            raise self._explained(error) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("rollback")

    def _save_scope(self, uid: str, scope: Scope) -> int:
        changed: dict[Any, Entry | None] = dict.fromkeys(scope.removed)
        changed.update((key, entry or None) for key, entry in scope.entries.items() if entry.dirty)
        pages = _Pages(self._rows)
        scope.flush(pages)
        size = self._write(uid, changed, scope.pageable) + pages.written
        scope.removed.clear()
        for entry in scope.entries.values():
            entry.dirty = False
        if len(scope.entries) > _CACHED_ENTRIES:
            scope.entries.clear()
        return size

    def _write(self, uid: str, changed: dict[Any, Entry | None], pageable: Collection[str] = ()) -> int:
        pages, size = _Pages(self._rows), 0
        by_hash: dict[int, dict[Any, Entry | None]] = {}
        for key, entry in changed.items():
            by_hash.setdefault(stable_hash(key), {})[key] = entry
        for digest, keys in by_hash.items():
            row = self._rows.entry(uid, digest)
            stored: dict[Any, Any] = {} if row is None else decode_state(row[0], uid, _as_is)
            try:
                for key, entry in keys.items():
                    if entry is None:
                        stored.pop(key, None)
                    else:
                        entry.write_pages(pages, pageable)
                        stored[key] = dict(entry)
                data = encode(stored) if stored else None
            except NotSerializable as error:
                found = {key: entry for key, entry in keys.items() if entry is not None}
                raise unserializable_state(uid, found, error) from error
            size += 0 if data is None else len(data)
            self._rows.put_entry(uid, digest, data, None if row is None else row[1])
        return size + pages.written

    def _explained(self, error: Exception) -> CheckpointError:
        known = self._rows.explained(error) if isinstance(error, sqlite3.Error) else error
        return known if isinstance(known, CheckpointError) else unusable(self._directory, known)

    def close(self) -> None:
        self._db.close()


class _Pages:
    """Pages of all steps; their numbers are SQLite's row ids."""

    def __init__(self, rows: SealedRows) -> None:
        self._rows = rows
        self.written = 0
        self.get_page = rows.page
        self.remove_page = rows.remove_page
        self.reserve_pages = rows.reserve_pages

    def put_page(self, number: int | None, data: bytes) -> int:
        self.written += len(data)
        return self._rows.put_page(number, data)


class _Loader:
    def __init__(self, rows: SealedRows, uid: str) -> None:
        self._rows = rows
        self._uid = uid

    def load(self, key: Any) -> Entry | None:
        row = self._rows.entry(self._uid, stable_hash(key))
        found = None if row is None else decode_state(row[0], self._uid, _as_is).get(key)
        if found is None:
            return None
        entry = Entry(found)
        entry.bind_pages(_Pages(self._rows))
        return entry


def _as_is(row: Any) -> Any:
    return row
