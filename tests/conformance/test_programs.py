"""B1: sources, parallelism, collecting with and without a limit, runtime modes; several stages in one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.streams import CollectSink, RuntimeExecutionMode, StreamExecutionEnvironment
from emberflow.testing import (
    LOCAL,
    SPARK,
    Host,
    literal_files,
    on_every_host,
    per_key,
    read_committed,
    unordered,
)
from emberflow.testing.spark_session import shared_session, spark_missing


@on_every_host
def test_a_bounded_program_ends(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([3, 1, 2]).map(lambda value: value * 10))
    assert out == [30, 10, 20]


@on_every_host
def test_an_empty_collection_emits_nothing(host: Host) -> None:
    assert host.run(lambda env: env.from_collection([]).key_by(lambda v: v).reduce(lambda a, b: a)) == []


@on_every_host(nightly=[SPARK])
def test_a_sequence_is_read_in_parallel(host: Host) -> None:
    out = host.run(lambda env: env.set_parallelism(2).from_sequence(1, 1000).map(lambda value: value))
    assert sorted(out) == list(range(1, 1001))


@on_every_host
def test_a_limit_stops_the_job(host: Host) -> None:
    out = host.run(lambda env: env.from_sequence(1, 100_000), limit=5)
    assert len(out) == 5


@on_every_host(nightly=[SPARK])
def test_a_limit_above_the_size_returns_everything(host: Host) -> None:
    assert host.run(lambda env: env.from_collection([1, 2]), limit=5) == [1, 2]


@on_every_host(hosts=(LOCAL, SPARK))
def test_automatic_mode_runs_a_bounded_program_as_a_batch(host: Host) -> None:
    out = host.run(
        lambda env: (
            env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
            .from_collection([("a", 1), ("a", 2)])
            .key_by(lambda value: value[0])
            .sum(1)
        )
    )
    assert out == [("a", 3)]


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_default_mode_is_streaming_except_for_tables(engine: str) -> None:
    if engine == "spark" and spark_missing():
        pytest.skip(f"B1 on Spark: {spark_missing()}")
    spark = shared_session() if engine == "spark" else None

    def make() -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment.get_execution_environment(engine=engine, spark=spark, parallelism=1)

    running = make().from_collection([("a", 1), ("a", 2)]).key_by(lambda value: value[0]).sum(1)
    assert list(running.execute_and_collect()) == [("a", 1), ("a", 3)]
    rows: Any = [{"k": "a", "n": 1}, {"k": "a", "n": 2}]
    table = rows if spark is None else spark.createDataFrame(rows)
    totals = make().from_dataframe(table).key_by(lambda row: row["k"]).sum("n")
    assert list(totals.execute_and_collect()) == [{"k": "a", "n": 3}]


@on_every_host(nightly=[SPARK])
def test_the_parallelism_of_a_step_does_not_change_the_result(host: Host) -> None:
    records = [(f"k{i % 7}", i) for i in range(70)]
    out = host.run(
        lambda env: env.from_collection(records).key_by(lambda value: value[0]).sum(1).set_parallelism(2)
    )
    totals = {key: found[-1][1] for key, found in per_key(out).items()}
    assert totals == {f"k{k}": sum(i for i in range(70) if i % 7 == k) for k in range(7)}


@on_every_host(nightly=[SPARK])
def test_two_keyed_stages_in_one_program(host: Host) -> None:
    words = ["to", "be", "or", "not", "to", "be"]
    out = host.run(
        lambda env: (
            env.from_collection(words)
            .map(lambda word: (word, 1))
            .key_by(lambda pair: pair[0])
            .sum(1)
            .map(lambda pair: (len(pair[0]), pair[1]))
            .key_by(lambda pair: pair[0])
            .max(1)
        )
    )
    assert {key: found[-1] for key, found in per_key(out).items()} == {2: (2, 2), 3: (3, 1)}
    assert len(out) == (6 if host.streaming else 2)


@on_every_host
def test_three_keyed_stages_with_another_key_each(host: Host) -> None:
    records = list(range(100))
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .key_by(lambda n: n % 10)
            .map(lambda n: n + 1)
            .key_by(lambda n: n % 7)
            .map(lambda n: n * 2)
            .key_by(lambda n: "all")
            .map(lambda n: n)
        )
    )
    assert sorted(out) == [(n + 1) * 2 for n in records]


@on_every_host(nightly=[SPARK])
def test_one_stream_feeds_two_keyed_stages(host: Host) -> None:
    def build(env: StreamExecutionEnvironment):
        numbers = env.from_collection([1, 2, 3, 4])
        parity = numbers.key_by(lambda n: n % 2).reduce(lambda a, b: a + b).map(lambda n: ("parity", n))
        total = numbers.key_by(lambda n: 0).reduce(lambda a, b: a + b).map(lambda n: ("total", n))
        return parity.union(total)

    out = per_key(host.run(build))
    parity = [("parity", 1), ("parity", 2), ("parity", 4), ("parity", 6)]
    assert unordered(out["parity"]) == (parity if host.streaming else parity[2:])
    assert out["total"] == host.emitted([("total", 1), ("total", 3), ("total", 6), ("total", 10)])


@on_every_host
def test_one_stream_feeds_two_sinks(host: Host, tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment):
        doubled = env.from_collection([1, 2, 3]).map(lambda n: n * 2)
        doubled.sink_to(literal_files(tmp_path / "files"))
        return doubled.map(lambda n: n + 1)

    assert host.run(build) == [3, 5, 7]
    assert unordered(read_committed(tmp_path / "files")) == [2, 4, 6]


@on_every_host(nightly=[SPARK])
def test_execute_waits_for_the_end(host: Host) -> None:
    found: list[int] = []
    env = host.environment()
    env.from_collection([1, 2, 3]).sink_to(CollectSink(lambda batch: found.extend(batch.values)))
    result = env.execute("three numbers")
    assert found == [1, 2, 3]
    assert result.get_job_id()
    assert result.get_net_runtime() >= 0


@on_every_host
def test_an_environment_runs_one_program_after_another(host: Host) -> None:
    env = host.environment()
    first = env.from_collection([1, 2]).execute_and_collect()
    assert list(first) == [1, 2]
    second = env.from_collection([3]).map(lambda n: n + 1).execute_and_collect()
    assert list(second) == [4]


@on_every_host
def test_a_program_without_a_sink_is_rejected(host: Host) -> None:
    env = host.environment()
    env.from_collection([1])
    with pytest.raises(InvalidArgument, match=r"no sink.*\n.*execute_and_collect"):
        env.execute()


@on_every_host(nightly=[SPARK])
def test_many_records_of_many_keys(host: Host) -> None:
    records = [(i % 500, 1) for i in range(20_000)]
    out = host.run(lambda env: env.from_collection(records).key_by(lambda v: v[0]).sum(1))
    assert len(out) == (20_000 if host.streaming else 500)
    assert {key: found[-1][1] for key, found in per_key(out).items()} == dict.fromkeys(range(500), 40)
