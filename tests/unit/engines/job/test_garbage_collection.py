from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from emberflow.engines.job.garbage_collection import NEW_OBJECTS, collect_rarely, rare_collections
from emberflow.streams import StreamExecutionEnvironment


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.enable()
    gc.set_threshold(*before)


def test_thresholds_are_restored_when_the_last_job_has_ended() -> None:
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == (NEW_OBJECTS, 10, 10)
        assert gc.get_threshold() == (NEW_OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_what_the_program_has_set_is_respected() -> None:
    gc.set_threshold(NEW_OBJECTS * 2, 5, 5)
    with rare_collections():
        assert gc.get_threshold() == (NEW_OBJECTS * 2, 5, 5)
    assert gc.get_threshold() == (NEW_OBJECTS * 2, 5, 5)
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        gc.set_threshold(1_000, 5, 5)
    assert gc.get_threshold() == (1_000, 5, 5)


@pytest.mark.parametrize("young", [0, 700])
def test_a_collector_that_is_switched_off_stays_off(young: int) -> None:
    gc.set_threshold(young, 10, 10)
    if young:
        gc.disable()
    assert not collect_rarely()
    assert gc.get_threshold()[0] == young


def test_a_local_job_restores_them() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    seen: list[int] = []
    env.from_collection([1]).map(lambda value: seen.append(gc.get_threshold()[0])).print()
    env.execute("collections")
    assert (seen, gc.get_threshold()) == ([NEW_OBJECTS], (700, 10, 10))
