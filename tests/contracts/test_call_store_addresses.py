"""From the address in a job's options to the store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emberflow.durable.location import open_store
from emberflow.durable.redaction import redacted, secrets_of, shown
from emberflow.durable.stores.file_store import FileCallStore
from emberflow.durable.stores.object_store import ObjectCallStore
from emberflow.durable.stores.postgres_store import PostgresCallStore
from emberflow.errors import InvalidArgument
from tests.support.call_stores.places import read_all
from tests.support.call_stores.servers import BucketServer, PostgresServer


def test_a_path_and_a_file_address_are_one_place(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    plain = open_store(str(folder), "a/job")
    address = open_store(folder.as_uri(), "a/job")
    other = open_store(str(folder), "../a")
    plain.append([b"1"], sync=True)

    assert isinstance(plain, FileCallStore)
    assert read_all(address, plain.owner) == [b"1"]
    assert other.read_new() == []
    assert sorted(path.name for path in folder.iterdir()) == ["job-a%2Fjob", "job-a%2Fjob.json"]
    plain.close()


def test_postgres(postgres_server: PostgresServer) -> None:
    store, other = open_store(postgres_server.dsn, "addresses"), open_store(postgres_server.dsn, "addresses")
    store.append([b"1"], sync=True)

    assert isinstance(store, PostgresCallStore)
    assert read_all(other, store.owner) == [b"1"]
    store.close()
    other.close()


def test_a_bucket_with_settings(bucket_server: BucketServer) -> None:
    address = f"{bucket_server.uri}/some/folder/?{bucket_server.settings}"
    store, other, stranger = (open_store(address, job) for job in ("a/b", "a/b", "a"))
    store.append([b"1"], sync=True)

    assert isinstance(store, ObjectCallStore)
    assert read_all(other, store.owner) == [b"1"]
    assert stranger.read_new() == []
    assert stranger.owners() == []
    store.close()


@pytest.mark.parametrize("address", ["redis://u:hidden@host/0", "ftp://host/x"], ids=["redis", "ftp"])
def test_an_unknown_kind_of_address_names_the_supported_ones(address: str) -> None:
    with pytest.raises(InvalidArgument, match="there is no call store for") as caught:
        open_store(address, "job")
    for known in ("a path", "file://", "postgresql://", "s3://", "gs://", "abfs://", "hdfs://"):
        assert known in caught.value.way_out
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("address", ["", "s3://"], ids=["empty", "only-a-scheme"])
def test_an_address_without_a_place_is_rejected(address: str) -> None:
    with pytest.raises(InvalidArgument, match="does not name a place"):
        open_store(address, "job")


@pytest.mark.parametrize(
    ("package", "address", "extra"),
    [
        ("psycopg", "postgresql://u:hidden@host/db", "emberflow[postgres]"),
        ("pyarrow", "s3://b/x", "emberflow[files]"),
    ],
    ids=["psycopg", "pyarrow"],
)
def test_a_missing_package_names_the_extra_to_install(package: str, address: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
from emberflow.durable.location import open_store
from emberflow.errors import PackageMissing
assert not [name for name in ("psycopg", "pyarrow") if sys.modules.get(name)], "not lazy"
try:
    open_store({address!r}, "job")
except PackageMissing as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install '{extra}'" in done.stdout
    assert "hidden" not in done.stdout


@pytest.mark.parametrize(
    ("address", "said", "reported"),
    [
        ("postgresql://u:pa%40ss@h/db", "wrong password pa@ss or pa%40ss", "wrong password *** or ***"),
        ("postgresql://u:pa@ss/word@h/db", 'host "ss/word@h" or "word"', 'host "ss/***@h" or "***"'),
        ("host=h password='a b\\'c' user=u", "it was a b\\'c", "it was ***"),
        ("s3://key:secret@b/x?secret_key=other", "secret and other", "*** and ***"),
        ("postgresql://h/db", "nothing to hide at h/db", "nothing to hide at h/db"),
    ],
    ids=["quoted", "unquoted", "settings", "bucket", "none"],
)
def test_secrets_stay_hidden(address: str, said: str, reported: str) -> None:
    assert redacted(said, address) == reported
    assert not [secret for secret in secrets_of(address) if secret in shown(address)]
