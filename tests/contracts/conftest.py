"""Servers that are started once per test process, and a new place for every test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.call_stores.places import MakePlace, Opened, Place
from tests.support.call_stores.servers import BucketServer, PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[BucketServer]:
    server = BucketServer()
    yield server
    server.stop()


@pytest.fixture
def place_of(request: pytest.FixtureRequest, tmp_path: Path) -> MakePlace:
    """An unused place of the named kind; starts the server that it needs."""

    def make(kind: str) -> Place:
        job_id = f"job-{uuid.uuid4().hex[:8]}"
        match kind:
            case "postgres":
                server: PostgresServer = request.getfixturevalue("postgres_server")
                return Place(kind=kind, address=server.dsn, job_id=job_id)
            case "bucket":
                bucket: BucketServer = request.getfixturevalue("bucket_server")
                return Place(
                    kind=kind, address=f"{bucket.uri}/stores", job_id=job_id, settings=f"?{bucket.settings}"
                )
            case _:
                return Place(kind=kind, address=str(tmp_path / kind), job_id=job_id)

    return make


@pytest.fixture
def place(request: pytest.FixtureRequest, place_of: MakePlace) -> Place:
    return place_of(request.param)


@pytest.fixture
def opened(place: Place) -> Iterator[Opened]:
    made = Opened(place)
    yield made
    made.close()
