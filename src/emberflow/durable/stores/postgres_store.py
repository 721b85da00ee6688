"""The store of durable calls in Postgres: one row per group of records; the lease is a session lock and a heartbeat.

An owner's groups are numbered and appended in sequence: a reader that has seen number n misses nothing below it. A
number is reused until it is known to be taken, so that a group whose commit was not acknowledged is neither written twice
nor followed by another one before it appears.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg

import emberflow.durable.stores.postgres_connection as pg
from emberflow.durable.redaction import shown
from emberflow.durable.stores.postgres_lease import PostgresLease
from emberflow.errors import CallLogFailed, CorruptData

T = TypeVar("T")

_LEASE_S = 10.0
# A lock that is held means a connection that is still open: the process is alive, or its machine is gone.
_LEASES_WITH_LOCK = 3
# How long an operation is retried while the server restarts.
_PATIENCE_S = 15.0
_PAUSE_S = 0.2

_LENGTH = struct.Struct("<I")
_START = struct.Struct("<5sI")
"""kind and version, checksum of what follows. Rows of the previous version start with a length, which is never as large as
these letters."""
_KIND = b"EFCG\x02"

_INSERT = "insert into emberflow_call_records (owner_id, number, records) values (%b, %b, %b) on conflict do nothing"
# In one statement, to save a round trip.
_INSERT_UNSYNCED = (
    "insert into emberflow_call_records (owner_id, number, records) select %b, %b, %b"
    " where set_config('synchronous_commit', 'off', true) = 'off' on conflict do nothing"
)
# The old groups are removed only if the new one was inserted.
_REPLACE = """
with new as (
    insert into emberflow_call_records (owner_id, number, records) values (%b, %b, %b)
    on conflict do nothing returning owner_id, number
), gone as (
    delete from emberflow_call_records old using new where old.owner_id = new.owner_id and old.number < new.number
)
select number from new
"""
_SAME = "select records = %b from emberflow_call_records where owner_id = %b and number = %b"
_READ = """
select o.id, o.owner, r.number, r.records
from emberflow_call_owners o
left join unnest(%b::int[], %b::bigint[]) as seen (id, number) on seen.id = o.id
cross join lateral (
    select number, records from emberflow_call_records
    where owner_id = o.id and number > coalesce(seen.number, -1)
) r
where o.job_id = %s and o.owner <> %s
order by o.id, r.number
"""
_LEASE = """
select beat is null, extract(epoch from clock_timestamp() - beat)::float8,
       pg_try_advisory_xact_lock_shared(%s, id),
       extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8
from emberflow_call_owners where job_id = %s and owner = %s
"""


class PostgresCallStore:
    pause_s = 0.05

    def __init__(
        self,
        dsn: str,
        job_id: str,
        owner: str | None = None,
        *,
        lease_s: float = _LEASE_S,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.owner = owner or f"{os.getpid()}-{uuid.uuid4().hex}"
        self._dsn = dsn
        self._job_id = job_id
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._connection: pg.Connection | None = None
        self._reconnected_s: float | None = None
        self._lease: PostgresLease | None = None
        self._number = 0
        self._size = 0
        self._read_to: dict[int, int] = {}

    # writing

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        if records:
            packed = _packed(records)
            self._write(_INSERT if sync else _INSERT_UNSYNCED, packed)
            self._size += len(packed)

    def publish(self) -> None:
        pass  # Visible at once: data that is not synced is committed all the same.

    def replace(self, records: Sequence[bytes]) -> None:
        if records or self._lease is not None:
            packed = _packed(records)
            self._write(_REPLACE, packed)
            self._size = len(packed)

    def _write(self, statement: LiteralString, packed: bytes) -> None:
        if self._lease is None:
            self._lease = self._retried("cannot be written", self._take_lease)
        lease = self._lease

        def write() -> None:
            while True:
                connection = self._connected()
                values = lease.owner_id, self._number, packed
                if connection.execute(statement, values).rowcount == 1:
                    return
                # Taken: by this group, whose commit was not acknowledged, or by one that was given up.
                row = connection.execute(_SAME, (packed, lease.owner_id, self._number)).fetchone()
                if row is not None and row[0]:
                    return
                self._number += 1

        if not lease.lost:
            try:
                self._retried("cannot be written", write)
                self._number += 1
                return
            except psycopg.errors.ForeignKeyViolation:
                lease.lost = True
        raise CallLogFailed(
            "another process of the job declared this one dead and removed its durable calls",
            way_out="start the job again; if it happens often, find out why this process or the database stalls",
            committed="calls whose answer was not written are made again",
        )

    def _take_lease(self) -> PostgresLease:
        return PostgresLease(self._dsn, self._job_id, self.owner, beat_s=self._lease_s / 5)

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        if self._lease is not None:
            self._lease.give_up()
        self._disconnect()

    # reading

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        def read() -> list[pg.Row]:
            known = list(self._read_to), list(self._read_to.values())
            with self._connected().cursor(binary=True) as cursor:
                return cursor.execute(_READ, (*known, self._job_id, self.owner)).fetchall()

        found: dict[str, list[bytes]] = {}
        read_to: dict[int, int] = {}
        for owner_id, owner, number, packed in self._retried("cannot be read", read):
            try:
                found.setdefault(owner, []).extend(_unpacked(packed))
            except ValueError as error:
                raise self._damaged(owner_id, number, str(error)) from error
            read_to[owner_id] = number
        self._read_to |= read_to
        return [(owner, records) for owner, records in found.items() if records]

    def _damaged(self, owner_id: int, number: int, cause: str) -> CorruptData:
        row = f"owner_id = {owner_id} and number = {number}"
        return CorruptData(
            f"the durable call log in {shown(self._dsn)} is corrupted: the row of emberflow_call_records where {row}",
            cause=cause,
            way_out="restore the row from a backup; or delete it: the job then continues, and calls whose answers were"
            " recorded only there are made again",
            committed="nothing was removed",
        )

    def owners(self) -> list[str]:
        query = "select owner from emberflow_call_owners where job_id = %s and owner <> %s order by owner"
        return [row[0] for row in self._rows(query, (self._job_id, self.owner))]

    def alive(self, owner: str) -> bool:
        rows = self._rows(_LEASE, (pg.LOCK_CLASS, self._job_id, owner))
        if not rows:
            return False
        gave_up, silent_s, lock_is_free, server_up_s = rows[0]
        if gave_up:
            return False
        # After a restart or a failover of the server, processes need time to reconnect.
        if server_up_s < self._lease_s:
            return True
        if self._reconnected_s is not None and time.monotonic() - self._reconnected_s < self._lease_s:
            return True
        # A process that has lost its connection is alive without the lock until it has reconnected.
        return silent_s < self._lease_s * (0.5 if lock_is_free else _LEASES_WITH_LOCK)

    def remove(self, owner: str) -> None:
        query = "delete from emberflow_call_owners where job_id = %s and owner = %s returning id"
        for (owner_id,) in self._rows(query, (self._job_id, owner)):
            self._read_to.pop(owner_id, None)

    # the connection

    def _rows(self, query: LiteralString, values: tuple[Any, ...]) -> list[pg.Row]:
        return self._retried("cannot be read", lambda: self._connected().execute(query, values).fetchall())

    def _connected(self) -> pg.Connection:
        if self._connection is None:
            self._connection = pg.connect(self._dsn)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _retried(self, what: str, operation: Callable[[], T]) -> T:
        """Retries on a new connection while the server is unavailable; all operations are idempotent."""
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                return operation()
            except psycopg.errors.ForeignKeyViolation:
                raise
            except psycopg.OperationalError as error:
                if self._connection is not None:
                    self._disconnect()
                    self._reconnected_s = time.monotonic()
                if not pg.may_pass(error) or time.monotonic() >= deadline_s:
                    # Without the original error: its message might contain a password.
                    raise pg.failed(self._dsn, what, error) from None
            except psycopg.Error as error:
                self._disconnect()
                raise pg.failed(self._dsn, what, error) from None
            time.sleep(_PAUSE_S)


def _packed(records: Sequence[bytes]) -> bytes:
    body = b"".join(part for record in records for part in (_LENGTH.pack(len(record)), record))
    return _START.pack(_KIND, zlib.crc32(body)) + body


def _unpacked(packed: bytes) -> list[bytes]:
    """Raises ValueError."""
    records: list[bytes] = []
    position = 0
    if packed.startswith(_KIND):
        if len(packed) < _START.size or _START.unpack_from(packed)[1] != zlib.crc32(packed[_START.size :]):
            raise ValueError("its checksum does not match")
        position = _START.size
    while position < len(packed):
        if position + _LENGTH.size > len(packed):
            raise ValueError(f"it ends in the middle of record {len(records) + 1}")
        (length,) = _LENGTH.unpack_from(packed, position)
        position += _LENGTH.size
        if position + length > len(packed):
            raise ValueError(f"it ends in the middle of record {len(records) + 1}")
        records.append(packed[position : position + length])
        position += length
    return records
