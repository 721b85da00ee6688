"""What survives a restart keeps its format: hashes, packets, checkpoints and manifests of format 1, as files.

A change that fails here orphans stored state. If it is intended, add a new version with a reader for this one; never edit
the stored files. `UPDATE = True` writes files that are missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emberflow.engines.local.checkpointing.checkpoints import (
    Checkpoint,
    FileCheckpoints,
    SourceState,
    read_checkpoint,
)
from emberflow.errors import ProgramChanged
from emberflow.event_time.clock import FixedClock
from emberflow.events.batch import Batch
from emberflow.events.codecs import decode
from emberflow.events.identity import identity_of
from emberflow.events.key_groups import KeyGroups, stable_hash
from emberflow.events.packets import Packet, decode_packet, encode_packet
from emberflow.operators.scope import SavedScope, Scope
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.state.entry import Entry
from emberflow.streams import CoMapFunction, StreamExecutionEnvironment, WatermarkStrategy
from emberflow.testing import LOCAL

FILES = Path(__file__).parent / "v1"
UPDATE = False

KEYS: dict[str, Any] = {
    "empty text": "",
    "text": "user-1",
    "umlaut": "ü",
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "large": 2**70,
    "float": 1.5,
    "none": None,
    "bytes": b"bytes",
    "tuple": ("a", 1, None),
    "nested": (("a",), (1, (2.5,))),
    "set": frozenset({1, "x"}),
}

PACKET = Packet(
    edge=3,
    channel=1,
    sequence=7,
    batch=Batch([("a", 1), {"n": None}], [5, None], [-(2**63), 4], ["a", ("b", 2)]),
    watermark=9,
    at_end=True,
)


def stored(name: str, data: bytes) -> bytes:
    path = FILES / name
    if UPDATE and not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return path.read_bytes()


def test_hashes_of_keys() -> None:
    groups = KeyGroups(64)
    now = {name: [stable_hash(key), groups[key]] for name, key in KEYS.items()}
    assert json.loads(stored("hashes.json", json.dumps(now, indent=1).encode())) == now


def test_a_packet() -> None:
    data = stored("packet-2.bin", encode_packet(PACKET))
    assert decode_packet(data) == PACKET
    assert data[:2] == b"\x02\x01"
    before = (FILES / "packet.bin").read_bytes()
    assert before[:2] == b"\x01\x01"
    assert decode_packet(before) == PACKET


def test_a_packet_whose_records_name_their_origin() -> None:
    """Outputs of an agent whose events are logged."""
    batch = Batch([("a", 1), None], [5, None], None, ["a", "b"], [("reviewer", "key-1.2"), None])
    packet = Packet(edge=3, channel=1, sequence=8, batch=batch)
    data = stored("packet-3.bin", encode_packet(packet))
    assert data[:2] == b"\x03\x01"
    assert decode_packet(data) == packet


def test_a_checkpoint_file() -> None:
    scope = Scope(channels=[(0, 0)], idle_ms={}, clock=FixedClock(0))
    scope.entries["a"] = Entry({"count": 3, "seen": [1, None]})
    checkpoint = Checkpoint(
        epoch=4,
        sources={"source-1": SourceState(positions=[12], ended=[False])},
        scopes={
            "sum-1": [
                SavedScope(
                    watermark=41,
                    channels=[((0, 0), 41, 1000)],
                    event_timers=[(50, ["a"])],
                    processing_timers=[(2000, ["a", "b"])],
                )
            ]
        },
        prepared={"sink-1": [["staged", "final"]]},
    )
    if UPDATE and not (FILES / "local").exists():
        FileCheckpoints(FILES).save(checkpoint, {"sum-1": [scope]})
    read, entries = read_checkpoint(FILES / "local" / "chk-00000004.ckpt")
    assert read == checkpoint
    assert entries == {"sum-1": {"a": {"count": 3, "seen": [1, None]}}}


def test_state_bytes() -> None:
    assert decode(bytes.fromhex("018005950500000000000000") + b"K\x01K\x02\x86.") == (1, 2)


def program(env: StreamExecutionEnvironment) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    return (
        env.from_collection([("a", 1)])
        .map(lambda value: value)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: value[0])
        .sum(1)
        .filter(lambda value: True)
    )


def test_derived_uids() -> None:
    env = LOCAL.environment()
    program(env).print()
    now = [node.uid for node in env.job_graph().stream_graph.nodes]
    assert json.loads(stored("uids_v2.json", json.dumps(now, indent=1).encode())) == now


def test_state_with_uids_of_the_first_format(tmp_path: Path) -> None:
    """Those had 32 bits. They are no longer derived; the error says how to keep using their state, and that works."""

    def started(*uids: str) -> None:
        env = LOCAL.environment(checkpoint_dir=tmp_path)
        stream = env.from_collection([("a", 1)])
        total = stream.key_by(lambda value: value[0]).sum(1)
        sink = total.print()
        for step, uid in zip((stream, total, sink), uids, strict=False):
            step.uid(uid)
        env.execute()

    source, _, _, total, _, sink = json.loads((FILES / "uids.json").read_text())
    started(source, total, sink)
    with pytest.raises(ProgramChanged, match="no longer matches the checkpoint") as raised:
        started()
    assert f"give each step the uid it had, e.g. .uid({source!r})" in raised.value.way_out
    assert "emberflow savepoint create" in raised.value.way_out
    started(source, total, sink)


def test_identities() -> None:
    now = {name: identity_of(key, "step") for name, key in KEYS.items()}
    assert json.loads(stored("identities.json", json.dumps(now, indent=1).encode())) == now


def test_a_plan_of_the_first_form() -> None:
    """It knew keys and channels."""
    text = (FILES / "plan.json").read_text()
    graph = JobGraph.from_json(text)
    assert [stage.kind.value for stage in graph.stages] == ["source", "keyed"]
    assert [item.edge.label for item in graph.exchanges] == ["program.<locals>.<lambda>"]
    assert (
        JobGraph.from_json(text.replace('"by_channel": false', '"by_channel": true'))
        .exchanges[0]
        .edge.by_channel
    )


def test_a_plan() -> None:
    text = stored("plan-2.json", _plan().encode()).decode()
    graph = JobGraph.from_json(text)
    assert json.loads(graph.to_json()) == json.loads(text)
    assert [stage.kind.value for stage in graph.stages] == ["source", "keyed", "partitioned"]
    assert [item.edge.label for item in graph.exchanges] == [
        "program.<locals>.<lambda>",
        "forward",
        "hash(_plan.<locals>.<lambda>)",
    ]


def _plan() -> str:
    env = LOCAL.environment()
    stream = program(env)
    stream.connect(stream.key_by(lambda value: value[0])).map(CoMapFunction()).print()
    return env.explain("json")
