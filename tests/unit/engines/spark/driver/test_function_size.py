"""A program larger than the session accepts in one function is rejected before its query starts."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.engines.spark.session.session import FUNCTION_LIMIT, check_function_size
from emberflow.errors import NotSupported


class Session:
    """The caller's session, reduced to its settings."""

    def __init__(self, **settings: str) -> None:
        self._settings = settings
        self.conf = self

    def get(self, name: str, default: str) -> str:
        assert name == FUNCTION_LIMIT
        return self._settings.get("limit", default)


@pytest.mark.parametrize(
    ("settings", "size", "fits"),
    [
        ({}, 900_000, True),
        ({}, 1_100_000, False),
        ({"limit": "2m"}, 1_900_000, True),
        ({"limit": "2m"}, 2_100_000, False),
        ({"limit": "1048576b"}, 1_100_000, False),
        ({"limit": "268435456"}, 20_000_000, True),
    ],
)
def test_the_size_that_a_session_accepts(settings: dict[str, Any], size: int, fits: bool) -> None:
    if fits:
        check_function_size(Session(**settings), size)
        return
    with pytest.raises(NotSupported, match="more than this session accepts") as caught:
        check_function_size(Session(**settings), size)
    assert FUNCTION_LIMIT in str(caught.value)
