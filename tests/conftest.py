"""Order of the whole run: tests without Spark first, so that a plain mistake shows before Spark has started. No test has to be quick:
property tests are not judged by the machine's speed. And no test talks to another machine."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.support import loopback_only

settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

loopback_only.switch_on()

SPARK = ("spark", "connect", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A stable sort: inside a group the order stays as collected, so a module's Spark session is shared.
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if not any(item.get_closest_marker(name) for name in SPARK):
        return 0
    # Long ones before short ones: no worker is left alone with one at the end.
    return 1 if item.get_closest_marker("slow") else 2
