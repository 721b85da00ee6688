"""Decisions of micro-batches in Postgres, next to a job's durable calls: one row each, and the first one wins."""

from __future__ import annotations

import contextlib
import time
from typing import Any, LiteralString

import psycopg

import emberflow.durable.stores.postgres_connection as pg
from emberflow.durable.decisions import framed, unframed

_PATIENCE_S = 15.0
_PAUSE_S = 0.2
_CREATE = """
create table if not exists emberflow_batch_decisions (
    job_id text not null, name text not null, decision bytea not null, primary key (job_id, name)
)
"""
_INSERT = "insert into emberflow_batch_decisions values (%s, %s, %b) on conflict do nothing"
_READ = "select decision from emberflow_batch_decisions where job_id = %s and name = %s"
_DELETE = "delete from emberflow_batch_decisions where job_id = %s and name = %s"


class PostgresDecisions:
    def __init__(self, dsn: str, job_id: str) -> None:
        self._dsn = dsn
        self._job_id = job_id
        self._connection: pg.Connection | None = None

    def find(self, name: str) -> bytes | None:
        rows = self._run("read", _READ, name)
        return unframed(bytes(rows[0][0]), f"Postgres, row {name!r}") if rows else None

    def decide(self, name: str, data: bytes) -> bool:
        self._run("written", _INSERT, name, framed(data))
        # Compare the contents: the reply to an insert may be lost with the connection, and the insert be repeated.
        return self.find(name) == data

    def forget(self, name: str) -> None:
        self._run("cleaned", _DELETE, name)

    def _run(self, what: str, query: LiteralString, *values: Any) -> list[pg.Row]:
        """Retries on a new connection while the server is unavailable; all of these queries are idempotent."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                if self._connection is None:
                    self._connection = pg.connect(self._dsn)
                    self._connection.execute(_CREATE)
                cursor = self._connection.execute(query, (self._job_id, *values))
                return cursor.fetchall() if cursor.description is not None else []
            except psycopg.Error as error:
                self._disconnect()
                passing = isinstance(error, psycopg.OperationalError) and pg.may_pass(error)
                # Processes that create the table concurrently conflict, in spite of "if not exists".
                passing = passing or isinstance(error, psycopg.errors.UniqueViolation)
                if not passing or time.monotonic() >= deadline_s:
                    # Without the original error: its message might contain a password.
                    raise pg.failed(self._dsn, f"cannot be {what}", error) from None
            time.sleep(_PAUSE_S)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
