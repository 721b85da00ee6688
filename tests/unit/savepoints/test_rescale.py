"""Random state through a savepoint into jobs with another parallelism, and out again: every key exists, once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.engines.spark.wire.initial_state import fill
from emberflow.event_time.clock import FixedClock
from emberflow.events.key_groups import KeyGroups
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.scope import SavedScope
from emberflow.savepoints import Savepoint
from emberflow.savepoints.form import FrameKind
from emberflow.savepoints.paged_values import inlined
from emberflow.savepoints.reader import SavepointReader
from emberflow.savepoints.wiring import wiring_of
from emberflow.savepoints.writer import SavepointWriter
from emberflow.state.pages import Fields, Node
from emberflow.streams import CollectSink, KeyedProcessFunction, StreamExecutionEnvironment
from emberflow.testing import TestSource

KEYS = st.one_of(st.text(max_size=4), st.integers(-50, 50), st.tuples(st.integers(0, 9), st.text(max_size=2)))


def memory(small: int, large: str, numbers: list[int]) -> Fields:
    return Fields({"small": small, "deep": Node({"large": large}), "numbers": numbers})


MEMORY = st.builds(
    memory,
    st.integers(),
    st.integers(0, 3).map(lambda pages: "x" * (pages * 1500)),
    st.lists(st.integers(), max_size=900),
)
VALUES = st.one_of(
    st.fixed_dictionaries({"count": st.integers()}),
    st.fixed_dictionaries({"memory": MEMORY, "seq": st.integers(1, 99)}),
)
ENTRIES = st.dictionaries(KEYS, VALUES, max_size=30)
TIMES = st.integers(10**13, 10**14)
UID = "keeps"


class Keeps(KeyedProcessFunction):
    """Does not change state."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return ()


def program(env: StreamExecutionEnvironment) -> None:
    source = TestSource([], bounded=False)
    keyed = env.from_source(source, source_name="nothing").uid("nothing").key_by(lambda value: value)
    keyed.process(Keeps()).uid(UID).sink_to(CollectSink(lambda batch: None)).uid("out")


def environment(parallelism: int, backend: str, folder: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"state_backend": backend}, engine="local", parallelism=parallelism, checkpoint_dir=folder
    )
    program(env)
    return env


def write(path: Path, entries: dict[Any, Any], timers: list[tuple[int, Any]], watermark: int) -> None:
    with SavepointWriter(
        path, job_name="j", job_id="i", engine="local", max_parallelism=64, epoch=3
    ) as writer:
        writer.source("nothing", [0], [False])
        step = writer.step(UID, "keyed_process")
        step.clock(watermark, {f"nothing > nothing > {UID}[0]": [watermark]}, ended=False)
        for key, values in entries.items():
            step.entry(key, values)
        for time_ms, key in timers:
            step.timer(FrameKind.PROCESSING_TIMERS, time_ms, key)
            step.timer(FrameKind.EVENT_TIMERS, time_ms, key)


@settings(max_examples=20, deadline=None)
@given(
    ENTRIES,
    st.lists(st.tuples(TIMES, KEYS), max_size=8, unique=True),
    st.integers(0, 10**9),
    st.lists(st.tuples(st.integers(1, 7), st.sampled_from(["memory", "sqlite"])), min_size=1, max_size=2),
)
def test_local_jobs(
    tmp_path_factory: pytest.TempPathFactory,
    entries: dict[Any, Any],
    timers: list[tuple[int, Any]],
    watermark: int,
    jobs: list[tuple[int, str]],
) -> None:
    folder = tmp_path_factory.mktemp("rescale")
    write(folder / "s0", entries, timers, watermark)
    for number, (parallelism, backend) in enumerate(jobs):
        env = environment(parallelism, backend, folder / f"c{number}").set_savepoint(folder / f"s{number}")
        env.execute_async().savepoint(folder / f"s{number + 1}", stop=True)

    reader = SavepointReader(folder / f"s{len(jobs)}")
    assert dict(reader.entries(UID)) == entries
    assert reader.manifest.steps[UID].keys == len(entries)
    assert reader.manifest.steps[UID].watermark == watermark
    for kind in (FrameKind.PROCESSING_TIMERS, FrameKind.EVENT_TIMERS):
        assert Counter(reader.timers(UID, kind)) == Counter(timers)
    assert Savepoint.read(folder / "s0").sources == Savepoint.read(reader.path).sources


class Blobs:
    def __init__(self) -> None:
        self.blobs: dict[int, bytes] = {}

    def get(self, bucket: int) -> bytes | None:
        return self.blobs.get(bucket)

    def put(self, bucket: int, data: bytes) -> None:
        self.blobs[bucket] = data

    def remove(self, bucket: int) -> None:
        self.blobs.pop(bucket, None)


@settings(max_examples=30, deadline=None)
@given(ENTRIES, st.lists(st.tuples(TIMES, KEYS), max_size=8, unique=True), st.randoms(use_true_random=False))
def test_groups_on_spark(
    tmp_path_factory: pytest.TempPathFactory,
    entries: dict[Any, Any],
    timers: list[tuple[int, Any]],
    random: Any,
) -> None:
    """Frames reach their group in any order, one by one; a small limit makes the groups use cold buckets."""
    path = tmp_path_factory.mktemp("groups") / "s"
    write(path, entries, timers, 5)
    frames = list(SavepointReader(path).frames(UID))
    random.shuffle(frames)
    hot: dict[int, bytes | None] = {}
    cold: dict[int, Blobs] = {}
    for frame in frames:
        layout = GroupLayout(hot.get(frame.group), cold.setdefault(frame.group, Blobs()), UID, hot_limit=500)
        scope = layout.scope([(0, 0)], {}, FixedClock(0), None)
        fill(scope, int(frame.kind), frame.body)
        hot[frame.group] = layout.commit(scope) or hot.get(frame.group)

    found: list[tuple[Any, Any]] = []
    due: Counter[Any] = Counter()
    groups = KeyGroups(64)
    for group, blob in hot.items():
        layout = GroupLayout(blob, cold[group], UID)
        saved = layout.saved or SavedScope()
        for key, values in layout.all_entries():
            assert groups[key] == group
            found.append((key, inlined(values, layout)))
        due.update((time_ms, key) for time_ms, keys in saved.processing_timers for key in keys)
        assert saved.event_timers == saved.processing_timers
    assert len(found) == len(entries)
    assert dict(found) == entries
    assert due == Counter(timers)


def test_the_programs_wiring_is_what_the_tests_assume() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    program(env)
    assert list(wiring_of(env.job_graph()).exchanges) == [f"nothing > nothing > {UID}[0]"]
