"""Programs of random shape compute what an obvious model of each step computes: on every host, whatever crashes, and
continued from a savepoint on another host. A failure shows the program and its seed; `check(seed, host)` repeats it."""

from __future__ import annotations

import itertools
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.streams import CollectSink, JobClient, JobStatus, RestartStrategies
from emberflow.testing import (
    LOCAL,
    LOCAL_2,
    LOCAL_BATCH,
    LOCAL_SQLITE,
    SPARK,
    SPARK_BATCH,
    Crash,
    Cut,
    Host,
    Latch,
    Pause,
)
from emberflow.testing.committed_files import literal_files, read_committed
from tests.support.random_kinds import random_program_of
from tests.support.random_programs import Order, Program
from tests.support.random_sources import Numbers

LOCAL_3 = replace(LOCAL, name="local-3", parallelism=3)
LOCAL_2_SQLITE = replace(LOCAL_SQLITE, name="local-2-sqlite", parallelism=2)
RESTARTABLE = [LOCAL, LOCAL_2, LOCAL_SQLITE, LOCAL_2_SQLITE]
ON_SPARK = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]
MICRO_BATCHES: dict[str, Any] = {"max_records_per_batch": 25}

seeds = st.integers(0, 2**32)


def sources_of(program: Program) -> list[Numbers]:
    return [node.step for node in program.nodes if isinstance(node.step, Numbers)]


def complete(program: Program, found: list[Any], *, batch: bool, seed: int) -> None:
    wrong = program.differences(found, batch=batch)
    assert not wrong, "\n".join([f"seed {seed}", repr(program), *wrong])


def check(seed: int, host: Host) -> None:
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        program = random_program_of(rng, rng.randint(2, 14), Path(folder))
        small = MICRO_BATCHES if host == SPARK else None
        complete(program, host.run(program.build, options=small), batch=not host.streaming, seed=seed)


def check_crashes(seed: int, host: Host) -> None:
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        program = random_program_of(rng, rng.randint(2, 12), Path(folder))
        for source in sources_of(program):
            extras = [Crash(), Crash(), Cut(), Pause(4), Pause(15)]
            for extra in rng.sample(extras, rng.randint(0, len(extras))):
                source.items.insert(rng.randint(0, len(source.items)), extra)
        run = host.run_to_files(
            program.build, Path(folder, "job"), checkpoint_interval_ms=rng.choice([5, 20])
        )
        complete(program, run.values, batch=False, seed=seed)


def check_savepoints(seed: int, hosts: list[Host]) -> None:
    """Each host but the last stops with a savepoint when a random number of records has been read."""
    rng = Random(seed)
    latches: list[list[Latch]] = [[] for _ in hosts[:-1]]
    out: list[Any] = []
    savepoint: str | None = None
    with tempfile.TemporaryDirectory() as folder:
        program = random_program_of(rng, rng.randint(2, 10), Path(folder))
        # A job with this source does not end before its savepoint.
        sources_of(program)[0].kind = "test"
        for source in sources_of(program):
            source.kind = "test" if source.kind == "collection" else source.kind
            for latch in latches:
                latch.append(Latch())
                source.items.insert(rng.randint(0, len(source.items)), latch[-1])
            source.items.insert(rng.randint(0, len(source.items)), Crash())
            source.items.append(Cut())  # A latch holds only what is behind it.
        for number, host in enumerate(hosts):
            for latch in itertools.chain(*latches[:number]):
                latch.open()
            env = host.environment(checkpoint_dir=Path(folder, f"{number}"))
            env.enable_checkpointing(rng.choice([5, 1_000]))
            env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, rng.choice([0, 10])))
            if savepoint is not None:
                env.set_savepoint(savepoint)
            program.build(env).sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("sink")
            job = env.execute_async("part")
            if number < len(latches):
                wait_for_records(job, rng.choice([0, 3, 20]))
                savepoint = job.savepoint(Path(folder, f"savepoint-{number}"), stop=True)
            else:
                job.get_job_execution_result().result()
        complete(program, out, batch=False, seed=seed)


def check_cancels(seed: int, host: Host) -> None:
    """Canceled at any moment and continued from the same directory with more or fewer tasks."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        program = random_program_of(rng, rng.randint(2, 12), Path(folder))
        for source in sources_of(program):
            for extra in (Pause(10), Pause(20)):
                source.items.insert(rng.randint(0, len(source.items)), extra)
        for start in range(4):
            env = replace(host, parallelism=rng.randint(1, 3)).environment(checkpoint_dir=f"{folder}/job")
            env.enable_checkpointing(rng.choice([5, 1_000]))
            program.build(env).sink_to(literal_files(f"{folder}/out")).uid("files")
            job = env.execute_async("canceled")
            if start < 3:
                time.sleep(rng.random() * 0.03)
                job.cancel().result()
            if start == 3 or job.get_job_status().result() is not JobStatus.CANCELED:
                job.get_job_execution_result().result()
                break
        complete(program, read_committed(f"{folder}/out"), batch=False, seed=seed)


def wait_for_records(job: JobClient, count: int) -> None:
    """Until so many were read, or no more come for now: the rest is behind a latch."""
    seen, since = -1, time.monotonic()
    while job.metrics.records_in < count and time.monotonic() - since < 0.2:
        if job.metrics.records_in != seen:
            seen, since = job.metrics.records_in, time.monotonic()
        time.sleep(0.002)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, host=st.sampled_from([LOCAL, LOCAL_BATCH, LOCAL_2, LOCAL_SQLITE]))
def test_programs_compute_what_their_model_computes(seed: int, host: Host) -> None:
    check(seed, host)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, host=st.sampled_from(RESTARTABLE))
def test_crashes_lose_and_repeat_nothing(seed: int, host: Host) -> None:
    check_crashes(seed, host)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, hosts=st.lists(st.sampled_from([*RESTARTABLE, LOCAL_3]), min_size=2, max_size=3))
def test_savepoints_continue_on_other_hosts(seed: int, hosts: list[Host]) -> None:
    check_savepoints(seed, hosts)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, host=st.sampled_from([LOCAL, LOCAL_SQLITE]))
def test_canceled_jobs_continue_with_other_tasks(seed: int, host: Host) -> None:
    check_cancels(seed, host)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 800, 100))
def test_many_programs(start: int) -> None:
    for seed in range(start, start + 100):
        check(seed, [LOCAL, LOCAL_BATCH, LOCAL_2, LOCAL_2_SQLITE][seed % 4])
        if seed % 5 == 0:
            check_crashes(seed, RESTARTABLE[seed % 4])
            check_cancels(seed, [LOCAL, LOCAL_SQLITE][seed % 2])
            check_savepoints(seed, [RESTARTABLE[seed % 3], LOCAL_3, RESTARTABLE[seed % 4]])


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=ON_SPARK) for seed in range(12)])
def test_programs_on_spark(seed: int) -> None:
    check(seed, SPARK)
    check(seed + 100, SPARK_BATCH)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=ON_SPARK) for seed in range(4)])
def test_restarts_on_spark(seed: int) -> None:
    check_crashes(seed, SPARK)
    check_savepoints(seed, [SPARK, LOCAL_2] if seed % 2 else [LOCAL_2, SPARK])


def test_the_check_fails_if_a_record_is_lost_repeated_or_out_of_order() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = random_program_of(Random(2), 12, Path(folder))
        found = LOCAL.run(program.build)
    assert program.differences(found, batch=False) == []
    assert len(program.differences(found[1:], batch=False)) == 1
    assert len(program.differences([*found, found[0]], batch=False)) == 1
    ordered = [f"{at}.{out}" for at, out in program.leaves() if program.shape((at, out)).order > Order.NONE]
    reverse = [item for item in reversed(found) if item[0] in ordered]
    rest = [item for item in found if item[0] not in ordered]
    assert len(program.differences([*rest, *reverse], batch=False)) == len(ordered) > 0
