"""The conformance kit itself: clocks, sentinels, sources, hosts and gaps."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import EngineFailed, InvalidArgument, SourceFailed
from emberflow.streams import KeyedProcessFunction
from emberflow.testing import (
    LOCAL,
    Crash,
    Cut,
    Gap,
    Host,
    ManualClock,
    OperatorHarness,
    Pause,
    SimulatedCrash,
    TestSource,
    Timed,
    WorkerKill,
    on_every_host,
    per_key,
    unordered,
)


def read(source: TestSource, position: int = 0, limit: int = 100) -> list[tuple[list[Any], int, bool]]:
    return [(chunk.values, chunk.position, chunk.end) for chunk in source.read(0, position, limit)]


def test_a_manual_clock_moves_forward_only() -> None:
    clock, reported = ManualClock(5), list[int]()
    clock.on_advance(lambda: reported.append(clock.now_ms()))
    clock.advance(10)
    clock.advance(0)
    assert clock.now_ms() == 15
    assert reported == [15, 15]
    with pytest.raises(InvalidArgument):
        clock.advance(-1)


def test_a_manual_clock_drives_a_local_job() -> None:
    clock = ManualClock(1000)

    class Alarm(KeyedProcessFunction):
        def process_element(self, value: int, ctx: Any) -> None:
            ctx.timer_service().register_processing_time_timer(value)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp, ctx.timer_service().current_processing_time()

    env = LOCAL.environment(options={"clock": clock})
    source = TestSource([2000, 5000], bounded=False)
    results = env.add_source(source).key_by(lambda value: value).process(Alarm()).execute_and_collect()
    with results:
        for step in (500, 600, 10_000):
            clock.advance(step)
        assert sorted([next(results), next(results)]) == [(2000, 12100), (5000, 12100)]


def test_a_crash_happens_once_across_processes() -> None:
    crash = Crash()
    copy = pickle.loads(pickle.dumps(crash))
    assert not crash.happened
    with pytest.raises(SimulatedCrash):
        copy.reach()
    crash.reach()
    assert crash.happened
    with pytest.raises(SimulatedCrash):
        Crash().reach()


def test_a_worker_kill_spares_the_test() -> None:
    with pytest.raises(InvalidArgument, match="Crash"):
        WorkerKill().reach()


def test_a_source_is_cut_where_it_says() -> None:
    source = TestSource([1, 2, Cut(), 3, 4, 5], batch=2)
    assert read(source) == [([1, 2], 2, False), ([], 3, False), ([3, 4], 5, False), ([5], 6, True)]
    assert read(TestSource([1, Cut(), 2])) == [([1], 2, False), ([2], 3, True)]
    assert read(TestSource([])) == [([], 0, True)]
    assert pickle.loads(pickle.dumps(TestSource([1, Cut(), Crash()]))).plan(0, 0, 9) == (2, False)


def test_plan_and_read_agree() -> None:
    source = TestSource([1, Cut(), Pause(5), 2, 3, Cut(), Cut(), 4], batch=3)
    for limit in (1, 2, 3, 100):
        position, end, planned = 0, False, list[int]()
        while not end:
            position, end = source.plan(0, position, limit)
            planned.append(position)
        assert [behind for _, behind, _ in read(source, 0, limit)] == planned


def test_records_before_a_crash_are_delivered() -> None:
    source = TestSource([1, 2, Crash(), 3])
    chunks = source.read(0, 0, 100)
    assert next(chunks).values == [1, 2]
    with pytest.raises(SimulatedCrash):
        next(chunks)
    assert read(source) == [([1, 2], 2, False), ([3], 4, True)]
    assert read(source, 2) == [([3], 4, True)]


def test_pauses_make_records_wait() -> None:
    source = TestSource([1, Pause(100), 2, Pause(50), 3])
    assert source.available(0, 0, 0) == 2
    assert source.available(0, 2, 99) == 0
    assert source.available(0, 2, 100) == 2
    assert source.available(0, 4, 149) == 0
    assert source.available(0, 4, 150) is None
    assert [source.due_ms(0, position) for position in range(6)] == [0, 0, 100, 100, 150, 150]
    assert TestSource([1]).available(0, 0, 0) is None


def test_records_may_have_an_event_time() -> None:
    (chunk,) = TestSource([Timed("a", 5), "b"]).read(0, 0, 10)
    assert (chunk.values, chunk.timestamps) == (["a", "b"], [5, None])


def test_a_crash_shows_as_a_failed_source() -> None:
    with pytest.raises(SourceFailed, match="SimulatedCrash"):
        LOCAL.run(lambda env: env.add_source(TestSource([1, Crash()])))


def test_an_error_that_is_not_a_crash_is_raised(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        LOCAL.run_to_files(lambda env: env.from_collection([0]).map(lambda n: 1 / n), tmp_path)


def test_crashes_created_inside_build_are_detected(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="inside build"):
        LOCAL.run_to_files(lambda env: env.add_source(TestSource([Crash()])), tmp_path, max_starts=3)


def test_a_host_stops_a_program_that_does_not_end() -> None:
    host = Host(name="short", engine="local", mode=LOCAL.mode, timeout_s=3)
    with pytest.raises(EngineFailed, match=r"did not end within 3 s on short; got \[1\]"):
        host.run(lambda env: env.add_source(TestSource([1], bounded=False)))


def test_gaps_are_strict_and_marked() -> None:
    def test_something(host: Host) -> None: ...

    gaps = {("test_something", "spark"): Gap(row="B9", reason="not yet")}
    marked: Any = on_every_host(gaps=gaps)(test_something)
    (mark,) = marked.pytestmark
    by_name = {param.id: [item.name for item in param.marks] for param in mark.args[1]}
    assert by_name["local"] == []
    assert by_name["spark"][0] == "spark"
    (xfail,) = [item for param in mark.args[1] for item in param.marks if item.name == "xfail"]
    assert xfail.kwargs["strict"]
    assert xfail.kwargs["reason"] == "B9: not yet"


def test_comparisons() -> None:
    assert per_key([("a", 2), ("b", 1), ("a", 1)]) == {"a": [("a", 2), ("a", 1)], "b": [("b", 1)]}
    assert unordered([2, "a", 1, None]) == unordered([None, 1, "a", 2])


def test_a_harness_drives_one_stage() -> None:
    with pytest.raises(InvalidArgument, match="one stage"):
        OperatorHarness(lambda s: s.key_by(len).map(str).key_by(len).map(str))
    harness = OperatorHarness(lambda stream: stream.map(lambda n: n + 1))
    harness.send([1, 2])
    assert harness.values == [2, 3]
