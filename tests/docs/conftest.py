"""The Spark session of the snippets is the one that all tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from emberflow.compat.pyflink.finder import uninstall
from emberflow.testing import stop_shared_session


@pytest.fixture(autouse=True)
def _no_import_hook_stays() -> Iterator[None]:
    yield
    uninstall()
    sys.modules.pop("emberflow.compat.pyflink.install", None)


@pytest.fixture(scope="session", autouse=True)
def _spark_session() -> Iterator[None]:
    yield
    stop_shared_session()
