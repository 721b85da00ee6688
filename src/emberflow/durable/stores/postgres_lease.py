"""A process's lease in Postgres: a lock that ends with its connection, and a heartbeat by the server's clock."""

from __future__ import annotations

import contextlib
import threading

import psycopg

import emberflow.durable.stores.postgres_connection as pg
from emberflow.errors import CallLogFailed

_PAUSE_S = 0.2

_REGISTER = (
    "insert into emberflow_call_owners (job_id, owner, beat) values (%s, %s, clock_timestamp())"
    " on conflict (job_id, owner) do update set beat = excluded.beat returning id"
)
_BEAT = (
    "update emberflow_call_owners set beat = clock_timestamp() where id = %s"
    " and set_config('synchronous_commit', 'off', true) = 'off'"
)


class PostgresLease:
    """A row for the process, a lock held by its connection, and a thread that sends heartbeats and reconnects."""

    def __init__(self, dsn: str, job_id: str, owner: str, *, beat_s: float) -> None:
        self.lost = False
        self._dsn = dsn
        self._beat_s = beat_s
        self._closed = threading.Event()
        self._connection: pg.Connection | None = pg.connect(dsn)
        self._locked = False
        try:
            with self._connection.transaction():
                row = self._connection.execute(_REGISTER, (job_id, owner)).fetchone()
                assert row is not None
                self.owner_id: int = row[0]
                # Locked before it becomes visible: a free lock means that the process has ended.
                self._lock(self._connection)
        except BaseException:
            self._drop()
            raise
        self._thread = threading.Thread(target=self._work, name="emberflow-lease", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        pause_s = self._beat_s
        while not self._closed.wait(pause_s) and not self.lost:
            try:
                self._beat()
                pause_s = self._beat_s
            except (psycopg.Error, CallLogFailed):
                self._drop()
                pause_s = _PAUSE_S
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.execute(
                    "update emberflow_call_owners set beat = null where id = %s", (self.owner_id,)
                )
        self._drop()

    def _beat(self) -> None:
        if self._connection is None:
            self._connection = pg.connect(self._dsn)
        if not self._locked:
            self._lock(self._connection)
        self.lost = self._connection.execute(_BEAT, (self.owner_id,)).rowcount == 0

    def _lock(self, connection: pg.Connection) -> None:
        # Without waiting: the server may not have noticed yet that the previous connection is gone.
        row = connection.execute(
            "select pg_try_advisory_lock(%s, %s)", (pg.LOCK_CLASS, self.owner_id)
        ).fetchone()
        self._locked = row is not None and row[0]

    def _drop(self) -> None:
        self._locked = False
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def give_up(self) -> None:
        self._closed.set()
        self._thread.join(pg.CONNECT_S + pg.STATEMENT_S)
