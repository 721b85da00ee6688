"""The expected output that all recovery tests compare with."""

from __future__ import annotations

import pytest

from tests.support.recovery.processes import committed, finish, start


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(start("local", "STREAMING", folder))
    lines = committed(folder)
    assert len(lines) > 200
    return lines
