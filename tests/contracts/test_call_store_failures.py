"""What stores do when the disk is full, the server is unavailable, or their process was declared dead."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from zlib import crc32

import psycopg
import pytest

import emberflow.durable.stores.postgres_connection as pg
from emberflow.durable.stores.object_store import ObjectCallStore
from emberflow.durable.stores.postgres_store import PostgresCallStore
from emberflow.errors import CallLogFailed, CorruptData
from tests.support.call_stores.children import appender
from tests.support.call_stores.places import LEASE_S, ON_DISK, MakePlace, Opened, Place, read_all
from tests.support.call_stores.servers import PASSWORD, BucketServer, PostgresServer
from tests.support.waiting import until

PIECES = ("s3cr", "p@ss", "word", "%40", "%3A")


def assert_tells_no_secret(error: BaseException) -> None:
    texts: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        texts.append(str(seen))
        seen = seen.__cause__
    for piece in (PASSWORD, *PIECES):
        assert piece not in "\n".join(texts).replace("password", "").replace("%40 %3A %2F", "")


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A store that a test may break."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def own_bucket() -> Iterator[BucketServer]:
    server = BucketServer()
    yield server
    server.stop()


@pytest.mark.parametrize("place", ON_DISK, indirect=True)
class TestDisks:
    def test_truncating_synced_data_is_an_error(self, opened: Opened, place: Place) -> None:
        writer = opened()
        writer.append([b"first"], sync=True)
        writer.append([b"second", b"third"], sync=True)
        writer.close()
        *_, newest = sorted(
            path for path in place.folder.rglob("*0*") if path.is_file() and "lease" not in path.name
        )
        whole = newest.read_bytes()
        reader = opened()
        for length in range(len(whole) - 1, 0, -1):
            newest.write_bytes(whole[:length])
            with pytest.raises(CorruptData, match=str(newest)):
                reader.read_new()

        newest.write_bytes(whole)
        assert read_all(reader, writer.owner) == [b"first", b"second", b"third"], "nothing was skipped before"

    def test_any_flipped_bit_is_an_error(self, opened: Opened, place: Place) -> None:
        writer = opened()
        writer.append([b"first"], sync=True)
        writer.append([b"second", b"third"], sync=True)
        writer.close()
        for path in place.folder.rglob("*0*"):
            if not path.is_file() or "lease" in path.name:
                continue
            whole = path.read_bytes()
            for at in range(len(whole)):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
                with pytest.raises(CorruptData, match=str(path)):
                    opened().read_new()
            path.write_bytes(whole)

    def test_an_object_of_the_previous_version_may_be_truncated_but_not_corrupted(
        self, opened: Opened, place: Place
    ) -> None:
        if place.kind == "files":
            pytest.skip("A15: files of the version before: tests/unit/durable/test_log_damage.py")
        writer = opened()
        writer.append([b"first", b"second"], sync=True)
        writer.close()
        (path,) = [item for item in place.folder.rglob("*0*") if item.is_file() and "lease" not in item.name]
        frames = [struct.pack("<II", len(body), crc32(body)) + body for body in (b"first", b"second")]
        whole = struct.pack("<4sBI", b"EFCO", 1, 2) + b"".join(frames)
        path.write_bytes(whole)
        assert read_all(opened(), writer.owner) == [b"first", b"second"]
        path.write_bytes(whole[:-1])
        assert read_all(opened(), writer.owner) == [b"first"]
        for at in (len(whole) - 1, whole.index(b"first")):
            path.write_bytes(whole[:at] + b"?" + whole[at + 1 :])
            with pytest.raises(CorruptData, match=str(path)):
                opened().read_new()

    def test_an_append_fails_on_a_full_disk_and_works_when_there_is_space(
        self, opened: Opened, place: Place
    ) -> None:
        reader = opened()
        with appender(place, "fill-the-disk") as child:
            assert child.finish() == ["CallLogFailed", "done"]

        seen = read_all(reader, child.owner)

        # A prefix of the failed append may be stored.
        assert seen in ([b"before", b"after"], [b"before", b"fits", b"after"])

    def test_a_replacement_that_fails_leaves_the_old_ones(self, opened: Opened, place: Place) -> None:
        with appender(place, "replace-on-a-full-disk") as child:
            assert child.finish() == ["CallLogFailed"]

        assert read_all(opened(), child.owner) in ([b"old"], [b"old", b"new"])

    def test_a_place_that_is_not_a_directory_fails(self, opened: Opened, place: Place) -> None:
        place.folder.parent.mkdir(parents=True)
        place.folder.write_bytes(b"in the way")
        store = opened()

        with pytest.raises(CallLogFailed, match="cannot be written") as caught:
            store.append([b"1"], sync=True)
        assert caught.value.way_out


@pytest.mark.slow
class TestPostgres:
    def test_reconnects_after_a_restart_with_its_lease(self, own_server: PostgresServer) -> None:
        place = Place(kind="postgres", address=own_server.dsn, job_id="restart", patience_s=60)
        writer, reader = place.open(), place.open()
        writer.append([b"1"], sync=True)
        assert read_all(reader, writer.owner) == [b"1"]

        own_server.crash()
        own_server.start()

        writer.append([b"2"], sync=True)
        assert read_all(reader, writer.owner) == [b"2"]
        assert reader.alive(writer.owner)
        until(lambda: locks(own_server) == 1)
        # Longer than the grace period after a restart.
        until(lambda: uptime_s(own_server) > 2 * LEASE_S)
        assert reader.alive(writer.owner)
        writer.close()
        assert not reader.alive(writer.owner)
        reader.close()

    def test_an_append_waits_for_a_restart(self, own_server: PostgresServer) -> None:
        place = Place(kind="postgres", address=own_server.dsn, job_id="wait", patience_s=60)
        with appender(place, "append-for-ever") as child:
            for _ in range(20):
                child.line()
            own_server.crash()
            own_server.start()
            last = -1
            for _ in range(200):
                last = int(child.line())
            child.kill()
        reader = place.open()
        seen = read_all(reader, child.owner)
        numbers = [int(item.partition(b":")[0]) for item in seen]

        assert numbers == list(range(len(numbers)))
        assert len(numbers) > last
        reader.close()

    def test_an_unreachable_server_is_a_failure(self, own_server: PostgresServer) -> None:
        place = Place(kind="postgres", address=own_server.dsn, job_id="away", patience_s=0.5)
        store, never = place.open(), place.open()
        store.append([b"1"], sync=True)
        own_server.crash()

        for attempt in (
            lambda: store.append([b"2"], sync=True),
            lambda: store.replace([b"2"]),
            store.read_new,
            store.owners,
            lambda: store.alive("other"),
            lambda: store.remove("other"),
            lambda: never.append([b"1"], sync=True),
        ):
            with pytest.raises(CallLogFailed, match=r"in Postgres at 127\.0\.0\.1") as caught:
                attempt()
            assert "server runs" in caught.value.way_out
            assert_tells_no_secret(caught.value)

        own_server.start()
        store.append([b"3"], sync=True)
        assert [item for _, records in never.read_new() for item in records] in (
            [b"1", b"3"],
            [b"1", b"2", b"3"],
        )
        store.close()
        never.close()

    def test_a_server_that_stops_responding_is_a_failure(
        self, own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pg, "ANSWER_S", 1)
        monkeypatch.setattr(pg, "CONNECT_S", 2)
        store = Place(kind="postgres", address=own_server.dsn, job_id="frozen", patience_s=0.5).open()
        store.append([b"1"], sync=True)
        own_server.freeze()
        try:
            with pytest.raises(CallLogFailed, match="cannot be written"):
                store.append([b"2"], sync=True)
        finally:
            own_server.thaw()
        # The group of the failed append may have been in flight: it is neither overtaken nor overwritten.
        store.append([b"3"], sync=True)
        reader = PostgresCallStore(own_server.dsn, "frozen")
        assert read_all(reader, store.owner) in ([b"1", b"3"], [b"1", b"2", b"3"])
        store.close()
        reader.close()

    @pytest.mark.parametrize(
        ("broken", "way_out"),
        [
            (lambda dsn: dsn.replace("s3cr", "s3crwrong"), "password are right"),
            (lambda dsn: dsn.replace("/postgres", "/missing"), "check that"),
            (lambda dsn: f"postgresql://emberflow:{PASSWORD}@127.0.0.1/postgres", ""),
            (lambda dsn: f"postgresql://emberflow:p@ss:word@127.0.0.1:x{PASSWORD}/postgres", ""),
            (lambda dsn: f"host=127.0.0.1 port=1 user=u password='{PASSWORD}' bogus=1", "postgresql://"),
            (lambda dsn: f"host=127.0.0.1 port=1 user=u password='{PASSWORD}'", "check that"),
        ],
        ids=["wrong-password", "no-database", "unquoted", "unreadable", "unknown-setting", "no-server"],
    )
    def test_errors_are_helpful_and_contain_no_password(
        self, postgres_server: PostgresServer, broken: object, way_out: str
    ) -> None:
        assert callable(broken)
        store = PostgresCallStore(broken(postgres_server.dsn), "job", patience_s=0.2)  # pyright: ignore[reportArgumentType]
        with pytest.raises(CallLogFailed) as caught:
            store.append([b"1"], sync=True)
        assert way_out in caught.value.way_out
        assert caught.value.cause
        assert_tells_no_secret(caught.value)

    def test_a_user_without_permissions_gets_a_clear_error(self, own_server: PostgresServer) -> None:
        with psycopg.connect(own_server.dsn) as connection:
            connection.execute("create user guest password 'guest'")
        dsn = f"postgresql://guest:guest@127.0.0.1:{own_server.port}/postgres"
        with pytest.raises(CallLogFailed, match="cannot be read") as caught:
            PostgresCallStore(dsn, "job").read_new()
        assert "grant the user the permission to create" in caught.value.way_out

    def test_a_server_with_synchronous_commit_off_syncs_our_appends(self, own_server: PostgresServer) -> None:
        with psycopg.connect(own_server.dsn, autocommit=True) as connection:
            connection.execute("alter system set synchronous_commit = off")
            connection.execute("select pg_reload_conf()")
        until(lambda: _number(own_server, "select (current_setting('synchronous_commit') = 'off')::int") == 1)

        connection = pg.connect(own_server.dsn)

        assert connection.execute("show synchronous_commit").fetchone() == ("on",)
        connection.close()

    def test_tables_of_another_format_are_rejected(self, own_server: PostgresServer) -> None:
        PostgresCallStore(own_server.dsn, "job").read_new()
        with psycopg.connect(own_server.dsn) as connection:
            connection.execute("update emberflow_call_schema set version = 2")

        with pytest.raises(CallLogFailed, match="format 2, this emberflow reads format 1"):
            PostgresCallStore(own_server.dsn, "job").read_new()

    def test_a_damaged_row_is_named_and_may_be_deleted(self, postgres_server: PostgresServer) -> None:
        place = Place(kind="postgres", address=postgres_server.dsn, job_id="damaged-row")
        writer = place.open()
        writer.append([b"first"], sync=True)
        writer.append([b"second"], sync=True)
        reader = place.open()
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            owner_id = f"(select id from emberflow_call_owners where owner = '{writer.owner}')"
            row = f"owner_id = {owner_id} and number = 0"
            for damage in (
                "set_byte(records, length(records) - 1, 1)",
                "substring(records for 8)",
                "substring(records for 16)",
            ):
                connection.execute("begin")
                connection.execute(f"update emberflow_call_records set records = {damage} where {row}")  # pyright: ignore[reportArgumentType, reportCallIssue]
                connection.execute("commit")
                with pytest.raises(
                    CorruptData, match="is corrupted: the row of emberflow_call_records"
                ) as caught:
                    reader.read_new()
            assert "or delete it" in caught.value.way_out
            where = caught.value.message.partition(" where ")[2]
            connection.execute(f"delete from emberflow_call_records where {where}")  # pyright: ignore[reportArgumentType, reportCallIssue]
            assert read_all(reader, writer.owner) == [b"second"]
            # In the format of the previous version.
            connection.execute(
                f"insert into emberflow_call_records (owner_id, number, records) values ({owner_id}, 9, %s)",  # pyright: ignore[reportArgumentType]
                (b"\x03\0\0\0old",),
            )
            assert read_all(reader, writer.owner) == [b"old"]
        for store in (writer, reader):
            store.close()

    def test_many_processes_may_create_the_tables(self, own_server: PostgresServer) -> None:
        place = Place(kind="postgres", address=own_server.dsn, job_id="first")
        with appender(place, "append", "3") as first, appender(place, "append", "3") as second:
            first.finish()
            second.finish()
        assert len(PostgresCallStore(own_server.dsn, "first").owners()) == 2


class TestBuckets:
    @pytest.mark.slow
    def test_an_unreachable_server_is_a_failure(self, own_bucket: BucketServer) -> None:
        attempts: list[Callable[[ObjectCallStore], object]] = [
            lambda store: store.append([b"2"], sync=True),
            lambda store: store.read_new(),
            lambda store: store.alive("other"),
            lambda store: store.remove("other"),
            lambda store: store.close(),
        ]
        stores = [ObjectCallStore(f"{own_bucket.uri}/calls?{own_bucket.settings}") for _ in attempts]
        for store in stores:
            store.append([b"1"], sync=True)
            store.append([b"held"], sync=False)
        own_bucket.stop()

        def failing(attempt: Callable[[ObjectCallStore], object], store: ObjectCallStore) -> None:
            try:
                attempt(store)
            finally:
                with suppress(CallLogFailed):
                    store.close()

        # Concurrently: the client library retries for seconds before it gives up.
        with ThreadPoolExecutor(len(attempts)) as pool:
            running = [
                pool.submit(failing, attempt, store) for attempt, store in zip(attempts, stores, strict=True)
            ]
        for attempt in running:
            with pytest.raises(CallLogFailed, match="in s3://calls/calls cannot be") as caught:
                attempt.result()
            assert "bucket" in caught.value.way_out
            assert_tells_no_secret(caught.value)

    @pytest.mark.slow
    def test_a_background_failure_is_raised_by_the_next_append(self, own_bucket: BucketServer) -> None:
        store = ObjectCallStore(f"{own_bucket.uri}/calls?{own_bucket.settings}")
        store.append([b"1"], sync=False)
        own_bucket.stop()

        def fails() -> bool:
            try:
                store.append([b"2"], sync=False)
            except CallLogFailed:
                return True
            return False

        until(fails)
        own_bucket.start()
        store.append([b"3"], sync=True)
        reader = ObjectCallStore(f"{own_bucket.uri}/calls?{own_bucket.settings}")
        seen = read_all(reader, store.owner)
        assert seen[0] == b"1"
        assert seen[-1] == b"3"
        store.close()

    def test_a_missing_bucket_is_a_failure(self, bucket_server: BucketServer) -> None:
        store = ObjectCallStore(f"s3://a:{PASSWORD[:4]}@no-such-bucket/calls?{bucket_server.settings}")
        with pytest.raises(CallLogFailed, match="in s3://no-such-bucket/calls cannot be written") as caught:
            store.append([b"1"], sync=True)
        assert_tells_no_secret(caught.value)

    def test_an_invalid_address_is_a_failure(self) -> None:
        with pytest.raises(CallLogFailed, match="cannot be opened") as caught:
            ObjectCallStore(f"s3://a:{PASSWORD[:4]}@bucket/x?no_such_setting=1")
        assert_tells_no_secret(caught.value)


@pytest.mark.parametrize("kind", ["objects", "bucket", "postgres"])
def test_a_live_process_whose_part_was_removed_fails(kind: str, place_of: MakePlace) -> None:
    place = replace(place_of(kind), patience_s=1)
    store, other = place.open(), place.open()
    store.append([b"1"], sync=True)
    other.remove(store.owner)

    def fails() -> bool:
        try:
            store.append([b"2"], sync=True)
        except CallLogFailed as error:
            return "declared this one dead" in str(error)
        return False

    until(fails)
    with pytest.raises(CallLogFailed, match="declared this one dead"):
        store.append([b"3"], sync=True)
    store.close()
    other.close()


def locks(server: PostgresServer) -> int:
    return _number(
        server, f"select count(*) from pg_locks where locktype = 'advisory' and classid = {pg.LOCK_CLASS}"
    )


def uptime_s(server: PostgresServer) -> int:
    return _number(server, "select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::int")


def _number(server: PostgresServer, query: str) -> int:
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])
