"""Injects faults into a job and compares it with an undisturbed one; `make torture` does it for longer (docs/torture.md)."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from emberflow.testing import spark_missing
from tests.recovery.torture.campaign import line_of
from tests.recovery.torture.plan import DAMAGES, SOURCES, Fault, draw
from tests.recovery.torture.processes import processes_of
from tests.recovery.torture.run import run_in_process
from tests.recovery.torture.steps import STEPS, WATCHED

SEEDS = range(1, 21)
IN_EVERY_RUN = {"local": 5, "spark": 1}
"""How many of an engine's seeds are part of `make test`; `make test-all` runs all."""


def seeds(engine: str) -> list[Any]:
    found = [seed for seed in SEEDS if draw(seed, short=True).on_spark == (engine == "spark")]
    later = found[IN_EVERY_RUN[engine] :]
    return [pytest.param(seed, marks=[pytest.mark.nightly] if seed in later else []) for seed in found]


def torture(seed: int, folder: Path) -> None:
    result = run_in_process(draw(seed, short=True), folder)
    print(line_of(result))
    assert result.violations == [], line_of(result)
    assert result.calls > 0
    assert result.outputs > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds("local"))
def test_guarantees_hold_on_the_local_engine(seed: int, tmp_path: Path) -> None:
    torture(seed, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(bool(spark_missing()), reason=f"A14 on Spark: {spark_missing()}")
@pytest.mark.parametrize("seed", seeds("spark"))
def test_guarantees_hold_on_spark(seed: int, tmp_path: Path) -> None:
    torture(seed, tmp_path)


def test_a_seed_is_repeatable() -> None:
    for seed in range(1, 200):
        assert draw(seed) == draw(seed)
        assert draw(seed, short=True) == draw(seed, short=True)
    assert len({str(draw(seed)) for seed in range(1, 200)}) > 190


def test_two_hundred_seeds_contain_every_fault_on_every_engine() -> None:
    plans = [draw(seed) for seed in range(1, 201)]
    struck = {(plan.engine, item.fault) for plan in plans for item in plan.disturbances}
    everywhere = set(Fault) - {Fault.KILL_DRIVER, Fault.KILL_WORKER, Fault.KILL_EXECUTOR}
    assert {("local", fault) for fault in everywhere} <= struck
    assert {fault for engine, fault in struck if engine.startswith("spark")} == set(Fault) - {
        Fault.KILL_EXECUTOR
    }
    aimed = [item for plan in plans for item in plan.disturbances if item.fault is Fault.KILL_AT_STEP]
    assert {item.step for item in aimed} == {*STEPS, *WATCHED}
    assert {item.worker_only for item in aimed} == {True, False}
    assert any(item.share == 0 for item in aimed), "before the first commit"
    assert {item.damage for plan in plans for item in plan.disturbances if item.damage} == set(DAMAGES)
    assert {(plan.on_spark, plan.source) for plan in plans} == set(product([True, False], SOURCES))
    assert sum(plan.keys[0] != "key0" for plan in plans) > 40
    assert any(len(set(plan.parallelism)) > 1 for plan in plans)
    assert ("cluster", Fault.KILL_EXECUTOR) in struck
    share = sum(plan.on_spark for plan in plans) / len(plans)
    assert 0.2 < share < 0.4


def test_processes_are_found_by_their_session() -> None:
    assert os.getpid() in {item.pid for item in processes_of(os.getsid(0))}
