"""What the local engine stores: atomically, and damaged files are never skipped silently."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.job.manifest import NAME, read_manifest
from emberflow.engines.local.checkpointing import sqlite_checkpoints
from emberflow.errors import CheckpointUnusable, CorruptData, InvalidArgument, ProgramChanged
from emberflow.events.stored_files import write_json
from emberflow.streams import JobStatus, KeyedProcessFunction, ListStateDescriptor, RuntimeContext
from emberflow.testing import LOCAL, LOCAL_SQLITE, Host, Pause, TestSource, on_every_host, per_key

BOTH = (LOCAL, LOCAL_SQLITE)


def first(value: Any) -> Any:
    return value[0]


class History(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._seen.add(value[1])
        yield value[0], list(self._seen.get())
        if value[1] == "clear":
            self._seen.clear()


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    LOCAL.run(lambda env: env.from_collection([1]).key_by(str).sum(), checkpoint_dir=tmp_path)
    (path,) = (tmp_path / "local").glob("chk-*.ckpt")
    data = path.read_bytes()
    for damaged in (data[:-1], data[:10], b"", data[:30] + bytes([data[30] ^ 1]) + data[31:]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptData, match=r"is corrupted[\s\S]*from a backup"):
            LOCAL.run(lambda env: env.from_collection([1]).key_by(str).sum(), checkpoint_dir=tmp_path)


def test_a_file_that_is_not_a_manifest(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{}")
    with pytest.raises(CorruptData, match=r"emberflow\.json is corrupted"):
        LOCAL.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path)


def test_a_manifest_of_a_newer_version_or_another_engine(tmp_path: Path) -> None:
    LOCAL.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path)
    manifest = asdict(read_manifest(tmp_path))
    write_json(tmp_path / NAME, {**manifest, "format": 3})
    with pytest.raises(CheckpointUnusable, match="newer version"):
        LOCAL.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path)
    write_json(tmp_path / NAME, {**manifest, "engine": "spark"})
    with pytest.raises(CheckpointUnusable, match="directory per engine"):
        LOCAL.run(lambda env: env.from_collection([1]), checkpoint_dir=tmp_path)


def test_another_backend_on_an_old_checkpoint(tmp_path: Path) -> None:
    LOCAL.run(lambda env: env.from_collection([("a", 1)]).key_by(first).sum(1), checkpoint_dir=tmp_path)
    with pytest.raises(ProgramChanged, match=r"'memory', now it is 'sqlite'[\s\S]*state_backend"):
        LOCAL_SQLITE.run(
            lambda env: env.from_collection([("a", 1)]).key_by(first).sum(1), checkpoint_dir=tmp_path
        )


def test_an_unknown_backend(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="memory, sqlite"):
        LOCAL.run(lambda env: env.from_collection([1]), options={"state_backend": "rocks"})


@on_every_host(hosts=BOTH)
def test_a_finished_job_collects_nothing_more(host: Host, tmp_path: Path) -> None:
    def build(env: Any) -> Any:
        return env.from_collection([("a", 1)]).key_by(first).sum(1)

    assert host.run(build, checkpoint_dir=tmp_path) == [("a", 1)]
    assert host.run(build, checkpoint_dir=tmp_path) == []


@on_every_host(hosts=BOTH)
def test_a_canceled_job_continues_where_it_stopped(host: Host, tmp_path: Path) -> None:
    records = [("a", 1), ("b", 2), Pause(60_000), ("a", 3)]

    def start(source: TestSource) -> Any:
        env = host.environment(checkpoint_dir=tmp_path)
        env.enable_checkpointing(10)
        return env.add_source(source).key_by(first).process(History()).execute_and_collect()

    results = start(TestSource(records))
    with results:
        assert sorted([next(results), next(results)]) == [("a", [1]), ("b", [2])]
    again = start(TestSource([item if not isinstance(item, Pause) else Pause(0) for item in records]))
    assert list(again) == [("a", [1, 3])]


def test_sqlite_reloads_evicted_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "_CACHED_ENTRIES", 0)
    items: list[Any] = []
    for number in range(6):
        items += [("a", number), (f"k{number}", "clear"), ("a", "x"), Pause(40)]
    source = TestSource([*items, ("k0", "again"), ("a", "end")])

    def build(env: Any) -> Any:
        env.enable_checkpointing(10)
        return env.add_source(source).key_by(first).process(History())

    out = per_key(LOCAL_SQLITE.run(build, checkpoint_dir=tmp_path))
    assert out["a"][-1] == ("a", [0, "x", 1, "x", 2, "x", 3, "x", 4, "x", 5, "x", "end"])
    assert out["k0"] == [("k0", ["clear"]), ("k0", ["again"])]


def test_a_job_can_be_watched_and_canceled() -> None:
    env = LOCAL.environment()
    env.add_source(TestSource([1, 2], bounded=False)).print()
    client = env.execute_async()
    deadline = time.monotonic() + 120
    while client.metrics.records_in < 2:
        assert time.monotonic() < deadline, "hang guard"
        time.sleep(0.005)
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel()
    assert client.get_job_status().result() is JobStatus.CANCELED
    client.cancel()


def test_old_checkpoints_are_removed(tmp_path: Path) -> None:
    source = TestSource([item for number in range(5) for item in (("a", number), Pause(30))])

    def build(env: Any) -> Any:
        env.enable_checkpointing(5)
        return env.add_source(source).key_by(first).sum(1)

    LOCAL.run(build, checkpoint_dir=tmp_path)
    assert len(list((tmp_path / "local").glob("chk-*.ckpt"))) == 2
