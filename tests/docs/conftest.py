"""The Spark session of the snippets is the one that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emberflow.testing import stop_shared_session


@pytest.fixture(scope="session", autouse=True)
def _spark_session() -> Iterator[None]:
    yield
    stop_shared_session()
