"""The formats that only Spark's checkpoints contain: a key group's state, the physical group ids, source offsets, manifests."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from emberflow.engines.job.manifest import Manifest
from emberflow.engines.spark.driver.offsets import OffsetPlanner
from emberflow.engines.spark.wire.job_spec import JobSpec, dump_spec
from emberflow.engines.spark.wire.packet_rows import group_ids
from emberflow.event_time.clock import FixedClock
from emberflow.operators.group_layout import GroupLayout
from emberflow.streams import DiscardingSink, StreamExecutionEnvironment

FILES = Path(__file__).parent / "v1"
UPDATE = False
CHANNELS = [(0, 0), (1, 0)]


class NoBuckets:
    def get(self, bucket: int) -> bytes | None:
        return None

    def put(self, bucket: int, data: bytes) -> None:
        raise AssertionError("a small group has no cold buckets")

    def remove(self, bucket: int) -> None:
        raise AssertionError("a small group has no cold buckets")


def stored(name: str, data: bytes) -> bytes:
    """`tests/golden/v1/<name>`; `UPDATE = True` writes files that are missing."""
    path = FILES / name
    if UPDATE and not path.exists():
        path.write_bytes(data)
    return path.read_bytes()


def group_state() -> bytes:
    layout = GroupLayout(None, NoBuckets())
    scope = layout.scope(CHANNELS, {}, FixedClock(7), lambda key: True)
    for key in ("ann", ("bob", 2)):
        entry = scope.entry(key)
        entry["total"] = 3
        entry.dirty = True
    scope.event_timers.register(100, "ann")
    scope.processing_timers.register(50, ("bob", 2))
    scope.channels.advance((0, 0), 42)
    scope.watermark = 40
    layout.armed_ms = 50
    data = layout.commit(scope)
    assert data is not None
    return data


def test_the_state_of_a_key_group() -> None:
    layout = GroupLayout(stored("group_state.bin", group_state()), NoBuckets())
    scope = layout.scope(CHANNELS, {}, FixedClock(7), lambda key: True)
    assert {key: dict(entry) for key, entry in scope.entries.items()} == {
        "ann": {"total": 3},
        ("bob", 2): {"total": 3},
    }
    assert scope.watermark == 40
    assert scope.event_timers.saved() == [(100, ["ann"])]
    assert scope.processing_timers.saved() == [(50, [("bob", 2)])]
    assert [item[:2] for item in scope.channels.saved()] == [((0, 0), 42), ((1, 0), -(2**63))]
    assert layout.armed_ms == 50


def test_group_ids_that_spark_sees() -> None:
    now = {
        f"{groups} on {partitions}": group_ids(groups, partitions)
        for groups, partitions in ((64, 2), (64, 3), (128, 8))
    }
    kept = json.loads(stored("group_ids.json", json.dumps(now).encode()))
    assert {name: tuple(ids) for name, ids in kept.items()} == now


def offset_planner() -> OffsetPlanner:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection(range(10)).key_by(lambda value: value).sum().sink_to(DiscardingSink())
    spec = JobSpec(
        graph=env.job_graph(),
        job_id="golden",
        parallelism=2,
        max_parallelism=64,
        batch=False,
        channels={0: 1, 1: 1},
        start_positions={0: [[0, False]]},
        at_end={0: False, 1: True},
        max_records=4,
        client_dir="",
    )
    return OffsetPlanner(dump_spec(spec), 0)


def test_offsets_of_a_source() -> None:
    planner = offset_planner()
    offsets = [planner.initial()]
    while offsets[-1] != (following := planner.latest(offsets[-1])):
        offsets.append(following)
    assert json.loads(stored("offsets_with_start.json", json.dumps(offsets).encode())) == offsets
    assert len(offsets) == 4


def test_offsets_without_the_start_of_their_batch() -> None:
    """As earlier versions stored them: each is followed by the same offset as then."""
    kept = json.loads(stored("offsets.json", b""))
    planner = offset_planner()
    assert [planner.latest(offset) for offset in kept] == [*kept[1:], kept[-1]]


def test_a_manifest() -> None:
    manifest = Manifest(
        format=1,
        job_id="0123456789abcdef",
        engine="spark",
        parallelism=2,
        max_parallelism=64,
        steps={"source-1": "source", "total": "reduce", "out": "sink"},
    )
    kept = stored("emberflow.json", json.dumps(asdict(manifest), indent=1).encode())
    assert Manifest(**json.loads(kept)) == manifest
