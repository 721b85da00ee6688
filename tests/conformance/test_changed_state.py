"""A program whose state has got or lost its time to live, or has another kind, is refused with the name of its step and state:
when it continues from its checkpoint, and when it starts from a savepoint. The unchanged program continues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import ProgramChanged
from emberflow.streams import (
    CollectSink,
    JobClient,
    KeyedProcessFunction,
    ListStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    ValueStateDescriptor,
)
from emberflow.testing import LOCAL, LOCAL_2, LOCAL_SQLITE, SPARK, Host, TestSource


class Count(KeyedProcessFunction[str, str, Any]):
    def __init__(self, form: str) -> None:
        self.form = form

    def open(self, runtime_context: RuntimeContext) -> None:
        if self.form == "list":
            self.items = runtime_context.get_list_state(ListStateDescriptor[int]("seen"))
            return
        descriptor = ValueStateDescriptor("seen", int)
        if self.form == "value+ttl":
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(3_600_000).build())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        if self.form == "list":
            self.items.add(1)
            yield value, list(self.items.get())
            return
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def start(
    host: Host, folder: Path, form: str, values: list[str], out: list[Any], savepoint: str | None = None
) -> JobClient:
    env = host.environment(checkpoint_dir=folder).enable_checkpointing(50)
    stream = env.from_source(TestSource(values, bounded=False), source_name="words").uid("words")
    counted = stream.key_by(str).process(Count(form)).uid("count").name("count")
    counted.sink_to(CollectSink(lambda batch: out.extend(batch.values))).uid("out")
    if savepoint is not None:
        env.set_savepoint(savepoint)
    return env.execute_async("counting")


def until_emitted(job: JobClient, out: list[Any], wanted: Any) -> None:
    ends = time.monotonic() + 300
    while wanted not in out:
        if job.get_job_status().result().is_final:
            job.get_job_execution_result().result()
        assert time.monotonic() < ends, f"never: {wanted} in {out}"
        time.sleep(0.02)


def refused(host: Host, folder: Path, form: str, savepoint: str | None = None) -> None:
    out: list[Any] = []
    with pytest.raises(ProgramChanged, match=r"step 'count' declares the state 'seen' as .* stored as value"):
        start(host, folder, form, ["a", "b", "a"], out, savepoint).get_job_execution_result().result()
    assert out == []


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(LOCAL, id="local"),
        pytest.param(LOCAL_SQLITE, id="local-sqlite"),
        pytest.param(SPARK, id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
@pytest.mark.parametrize("ttl", [False, True], ids=["added", "removed"])
def test_a_changed_state_is_refused(host: Host, ttl: bool, tmp_path: Path) -> None:
    if ttl and host is SPARK:
        pytest.skip("B8: the other direction shows it for Spark")
    before, after = ("value+ttl", "value") if ttl else ("value", "value+ttl")
    out: list[Any] = []
    job = start(host, tmp_path / "job", before, ["a", "b"], out)
    until_emitted(job, out, ("b", 1))
    savepoint = job.savepoint(tmp_path / "savepoint", stop=True)
    other = LOCAL if host is SPARK else LOCAL_2
    for number, form in enumerate((after, "list")):
        refused(host, tmp_path / "job", form)
        refused(other, tmp_path / f"new-{number}", form, savepoint)
    if host is SPARK:
        refused(host, tmp_path / "new-spark", after, savepoint)
    again: list[Any] = []
    job = start(host, tmp_path / "job", before, ["a", "b", "a"], again)
    until_emitted(job, again, ("a", 2))
    job.cancel()
