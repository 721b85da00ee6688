"""A savepoint of one engine starts on the other, with another parallelism, in the middle of everything: sums, windows,
timers, an agent's memory on pages, a run that waits for a call. What all parts put out together is what one
undisturbed run puts out, and a call that was answered is not made again."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.savepoints import Savepoint
from emberflow.streams import JobClient
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, SPARK, Host, TestSource
from tests.conformance.savepoint_program import KEYS, build, values

STEP = 24
LOCAL_3 = replace(LOCAL, name="local-3", parallelism=3)
SPARK_3 = replace(SPARK, name="spark-3", parallelism=3)

CHAINS = {
    "local": [LOCAL, LOCAL_2, LOCAL_SQLITE, LOCAL_3],
    "spark": [LOCAL_2, SPARK, SPARK_3, LOCAL_SQLITE],
}


def until(condition: Any, job: JobClient, what: str) -> None:
    ends = time.monotonic() + 120
    while not condition():
        if job.get_job_status().is_final:
            job.get_job_execution_result()
        assert time.monotonic() < ends, f"never: {what}"
        time.sleep(0.02)


def part(
    host: Host, folder: Path, number: int, last: int, savepoint: str | None
) -> tuple[list[Any], str | None]:
    """Runs one part of the chain: up to its share of the input, then a savepoint; the last part to the end."""
    out: list[Any] = []
    ends = number == last
    items = values(STEP * (number + 1))
    env = host.environment(checkpoint_dir=folder / f"checkpoints-{number}")
    env.enable_checkpointing(50)
    build(env, TestSource(items, bounded=ends), folder, out)
    if savepoint is not None:
        env.set_savepoint(savepoint)
    job = env.execute_async("chain")
    if ends:
        (folder / "go").touch()
        job.get_job_execution_result()
        return out, None
    counted = {("counted", key, STEP * (number + 1) // len(KEYS)) for key in KEYS}
    until(lambda: counted <= set(out), job, f"{counted} on {host}, got {out}")
    until((folder / "calls").exists, job, "the call of the slow key")
    return out, job.stop_with_savepoint(folder / f"savepoint-{number}")


def undisturbed(folder: Path, count: int) -> list[Any]:
    out: list[Any] = []
    folder.mkdir()
    (folder / "go").touch()
    env = LOCAL.environment()
    build(env, TestSource(values(count)), folder, out)
    env.execute("undisturbed")
    return out


@pytest.mark.parametrize(
    "name", [pytest.param("local", id="local"), pytest.param("spark", id="spark", marks=pytest.mark.spark)]
)
def test_parts_on_several_hosts_are_one_run(name: str, tmp_path: Path) -> None:
    hosts = CHAINS[name]
    found: list[Any] = []
    savepoint: str | None = None
    for number, host in enumerate(hosts):
        out, savepoint = part(host, tmp_path, number, len(hosts) - 1, savepoint)
        found += out
        if savepoint is not None:
            Savepoint.read(savepoint).check()

    expected = undisturbed(tmp_path / "undisturbed", STEP * len(hosts))
    assert Counter(found) == Counter(expected)
    assert {"total", "window", "counted", "alarm", "agent"} == {item[0] for item in found}
    for kind in ("total", "counted", "agent"):
        for key in KEYS:
            of_key = [item for item in found if item[:2] == (kind, key)]
            assert of_key == [item for item in expected if item[:2] == (kind, key)], "order of a key is kept"
    assert (tmp_path / "calls").read_text() == "price of 3\n"
