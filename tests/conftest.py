"""Order of the whole run: tests without Spark first, so that a simple mistake is reported before Spark has started. Property
tests have no deadlines, which would depend on the machine's speed, and CI draws the same examples each time: a change is
not refused for a fault that it did not bring. Everywhere else each run draws new ones. And no test connects to another
machine."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import loopback_only

settings.register_profile(
    "any speed",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any speed")

loopback_only.switch_on()

SPARK = ("spark", "connect", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A stable sort: within a group the collected order is kept, so a module's Spark session is shared.
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if not any(item.get_closest_marker(name) for name in SPARK):
        return 0
    # Long ones before short ones, so that no worker is left with a long one at the end.
    return 1 if item.get_closest_marker("slow") else 2
