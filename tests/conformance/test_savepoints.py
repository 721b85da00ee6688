"""A savepoint of one engine is started on the other, with another parallelism, in the middle of everything: sums, windows,
timers, lists, maps and an agent's memory on pages, a run with a call in flight. The output of all parts together equals that of one
undisturbed run, and an answered call is not made again."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.cli.main import main
from emberflow.engines.local import task_builder
from emberflow.savepoints import Savepoint
from emberflow.streams import JobClient, RestartStrategies
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, SPARK, Crash, Host, Sentinel, TestSource
from tests.conformance.savepoint_program import KEYS, build, values

STEP = 24
LOCAL_3 = replace(LOCAL, name="local-3", parallelism=3)
SPARK_3 = replace(SPARK, name="spark-3", parallelism=3)

CHAINS = {
    "local": [LOCAL, LOCAL_2, LOCAL_SQLITE, LOCAL_3],
    "spark": [LOCAL_2, SPARK, SPARK_3, LOCAL_SQLITE],
}


def until(condition: Any, job: JobClient, what: str) -> None:
    ends = time.monotonic() + 600
    while not condition():
        if job.get_job_status().result().is_final:
            job.get_job_execution_result().result()
        assert time.monotonic() < ends, f"never: {what}"
        time.sleep(0.02)


class Part:
    """One host's part of the chain, from the savepoint of the previous part."""

    def __init__(self, host: Host, folder: Path, number: int, savepoint: str | None, crash: Sentinel) -> None:
        self.host = host
        self.crash = crash
        self.folder = folder
        self.number = number
        self.savepoint = savepoint
        self.checkpoints = folder / f"checkpoints-{number}"
        self.out: list[Any] = []

    def start(self, count: int, *, ends: bool = False) -> JobClient:
        env = self.host.environment(checkpoint_dir=self.checkpoints).enable_checkpointing(50)
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
        items: list[Any] = values(count)
        if self.number:
            # In the second part, before anything of it is committed: it must start from the savepoint again.
            items.insert(STEP + 1, self.crash)
        build(env, TestSource(items, bounded=ends), self.folder, self.out)
        if self.savepoint is not None:
            env.set_savepoint(self.savepoint)
        return env.execute_async("chain")

    def counted(self, job: JobClient, count: int) -> None:
        """Waits until this many inputs were processed."""
        wanted = {("counted", key, count // len(KEYS)) for key in KEYS}
        until(lambda: wanted <= set(self.out), job, f"{wanted} on {self.host}, got {self.out}")

    def to_its_savepoint(self) -> str:
        job = self.start(STEP * (self.number + 1))
        self.counted(job, STEP * (self.number + 1))
        until((self.folder / "calls").exists, job, "the call of the slow key")
        return job.savepoint(self.folder / f"savepoint-{self.number}", stop=True)

    def interrupted(self) -> None:
        """Half of its share, then it is stopped; started again, it continues from its own checkpoint."""
        half = STEP * self.number + STEP // 2
        job = self.start(half)
        self.counted(job, half)
        live = job.savepoint(self.folder / f"live-{self.number}")
        assert Savepoint.read(live).sources["numbers"].positions == [half + 1]
        assert job.metrics.restarts == 1
        job.cancel()

    def to_the_end(self) -> None:
        (self.folder / "go").touch()
        self.start(STEP * (self.number + 1), ends=True).get_job_execution_result().result()


def undisturbed(folder: Path, count: int) -> list[Any]:
    out: list[Any] = []
    folder.mkdir()
    (folder / "go").touch()
    env = LOCAL.environment()
    build(env, TestSource(values(count)), folder, out)
    env.execute("undisturbed")
    return out


def same_state(one: Savepoint, other: Savepoint) -> None:
    """Whether a savepoint of a running job agrees with one created offline."""
    for savepoint in (one, other):
        savepoint.check()
    assert one.sources == other.sources
    assert one.manifest.epoch == other.manifest.epoch
    assert list(one.steps) == list(other.steps)
    for uid, step in one.steps.items():
        assert dict(step.items()) == dict(other.step(uid).items()), uid
        assert step.summary.parked == other.step(uid).summary.parked
    assert sum(step.summary.parked + step.summary.processing_timers for step in one.steps.values())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("local", id="local"),
        pytest.param("spark", id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_parts_on_several_hosts_are_one_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that timers are on pages with SQLite too.
    monkeypatch.setattr(task_builder, "TIMERS_IN_MEMORY", 256)
    *hosts, last = CHAINS[name]
    found: list[Any] = []
    savepoint: str | None = None
    crash = Crash()
    for number, host in enumerate(hosts):
        part = Part(host, tmp_path, number, savepoint, crash)
        if number == 1:
            part.interrupted()
        savepoint = part.to_its_savepoint()
        found += part.out
        made = tmp_path / f"made-{number}"
        assert main(["savepoint", "create", str(part.checkpoints), str(made)]) == 0
        same_state(Savepoint.read(savepoint), Savepoint.read(made))
    part = Part(last, tmp_path, len(hosts), savepoint, crash)
    part.to_the_end()
    found += part.out

    expected = undisturbed(tmp_path / "undisturbed", STEP * (len(hosts) + 1))
    assert Counter(found) == Counter(expected)
    kinds = {"total", "window", "counted", "alarm", "agent", "ruled", "told"}
    assert kinds == {item[0] for item in found}
    for kind in ("total", "counted", "agent", "told"):
        for key in KEYS:
            of_key = [item for item in found if item[:2] == (kind, key)]
            assert of_key == [item for item in expected if item[:2] == (kind, key)], (
                "the order within a key is kept"
            )
    assert (tmp_path / "calls").read_text() == "price of 3\n"
