"""Order of the whole run: quick tests first, so that a plain mistake shows before Spark has started. No test has to be quick:
property tests are not judged by the machine's speed. And no test talks to another machine."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.support import loopback_only

settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

loopback_only.switch_on()

LATER = ("spark", "connect", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A stable sort: inside a group the order stays as collected, so a module's Spark session is shared.
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marked = [index for index, name in enumerate(LATER, start=1) if item.get_closest_marker(name)]
    return max(marked, default=0)
