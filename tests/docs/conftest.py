"""The Spark session of the snippets is the one that all tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from emberflow.compat.finder import uninstall
from emberflow.compat.flink_agents.package import FLINK_AGENTS
from emberflow.compat.pyflink.package import PYFLINK
from emberflow.testing import stop_shared_session


@pytest.fixture(autouse=True)
def _no_import_hook_stays() -> Iterator[None]:
    yield
    for package in (FLINK_AGENTS, PYFLINK):
        uninstall(package)
        sys.modules.pop(package.install_module, None)


@pytest.fixture(scope="session", autouse=True)
def _spark_session() -> Iterator[None]:
    yield
    stop_shared_session()
