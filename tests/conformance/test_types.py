"""Declared types are applied: rows, tuples and plain values, from sources, steps, side outputs and keys."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import EmberflowError, InvalidArgument, StepFailed
from emberflow.streams import (
    CoMapFunction,
    EventTimeSessionWindows,
    KeyedProcessFunction,
    MapStateDescriptor,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    Row,
    RowKind,
    RuntimeContext,
    Time,
    TumblingEventTimeWindows,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import (
    LOCAL,
    LOCAL_2,
    LOCAL_BATCH,
    LOCAL_SQLITE,
    SPARK,
    SPARK_BATCH,
    Crash,
    Host,
    TestSource,
    on_every_host,
    per_key,
)

WORD = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
PAIR = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
WORDS = [("a", 1), {"word": "b", "n": True}, Row("a", 2.5), Row(n=4, word="b"), ["a", 3]]
TAG = OutputTag("halves", Types.ROW_NAMED(["half"], [Types.FLOAT()]))


@pytest.mark.parametrize("given", [Types.INT, "INT", 3, [], ["INT"], len])
def test_what_is_no_type_is_refused(given: Any) -> None:
    """It would have no effect."""
    stream = LOCAL.environment().from_collection([1])
    for declare in (
        lambda: stream.map(str, given),
        lambda: stream.key_by(str, given),
        lambda: stream.get_side_output(OutputTag("side", given)),
        lambda: ValueStateDescriptor("value", given),
        lambda: MapStateDescriptor("map", None, given),
        lambda: LOCAL.environment().from_collection([1], given),
    ):
        with pytest.raises(InvalidArgument, match=r"is not a type|must be type information, not 'INT'"):
            declare()


def named(name: str, stream: Any) -> Any:
    """Several scenarios in one program: each record with the scenario's name."""
    return stream.map(lambda value: (name, value))


class Halves(ProcessFunction):
    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        yield [value.word, value.n]
        yield TAG, (value.n / 2,)


class CountRows(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last", WORD))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        last = self._last.value()
        total = value.n if last is None else last.n + value.n
        self._last.update(Row(value.word, total))
        yield ctx.get_current_key(), total


@on_every_host
def test_declared_types_are_applied(host: Host) -> None:
    def build(env: Any) -> Any:
        words = env.from_collection(WORDS, WORD)
        plain = env.from_collection([("a", 1), ["b", 2]])
        nested = Types.TUPLE([Types.STRING(), Types.LIST(WORD)])
        halves = words.process(Halves(), output_type=PAIR)
        return named("source", words).union(
            named("named map", words.map(lambda row: (row.word, row["n"] + row[1]), WORD)),
            named("tuples", words.map(lambda row: [row.word, row.n], output_type=PAIR)),
            named("numbers", words.map(lambda row: row.n / 2, output_type=Types.INT())),
            named("flat", words.flat_map(lambda row: [(row.word, (row,))], nested)),
            named("main", halves),
            named("side", halves.get_side_output(TAG)),
            named("filtered", words.filter(lambda row: row.word == "a").filter(lambda row: row.n > 1)),
            named("undeclared", plain),
        )

    found = per_key(host.run(build))
    rows = [Row(word=word, n=n) for word, n in [("a", 1), ("b", 1), ("a", 2), ("b", 4), ("a", 3)]]
    assert found["source"] == [("source", row) for row in rows]
    assert found["named map"] == [("named map", Row(word=row.word, n=2 * row.n)) for row in rows]
    assert found["tuples"] == [("tuples", (row.word, float(row.n))) for row in rows]
    assert {type(value[1]) for _, value in found["tuples"]} == {float}
    assert [value for _, value in found["numbers"]] == [0, 0, 1, 2, 1]
    assert [value for _, value in found["flat"]] == [(row.word, [row]) for row in rows]
    assert found["main"] == [("main", (row.word, row.n)) for row in rows]
    assert found["side"] == [("side", Row(half=row.n / 2)) for row in rows]
    assert [row.n for _, row in found["filtered"]] == [2, 3]
    assert found["undeclared"] == [("undeclared", ("a", 1)), ("undeclared", ["b", 2])]


@on_every_host(nightly=[SPARK])
def test_fields_of_rows_by_name_and_position(host: Host) -> None:
    records = [("a", 3), ("b", 5), ("a", 1), ("a", 4), ("b", 2)]

    def build(env: Any) -> Any:
        words = env.from_collection(records, WORD)
        by_name, by_position = words.key_by("word"), words.key_by(0, key_type=Types.STRING())
        return named("sum", by_name.sum("n")).union(
            named("sum at 1", by_position.sum(1)),
            named("min", by_name.min("n")),
            named("max_by", by_position.max_by("n")),
            named("min_by", by_name.min_by(1)),
            named("reduce", by_name.reduce(lambda total, row: (total.word, total.n + row.n))),
            named("state", by_name.process(CountRows(), Types.ROW([Types.STRING(), Types.LONG()]))),
            named("rows as keys", words.key_by(lambda row: Row(row.word), Types.ROW([Types.STRING()]))
                  .map(lambda row: (row.word, row.n), PAIR).key_by(0).sum(1)),
        )  # fmt: skip

    found = per_key(host.run(build))

    def of(name: str, word: str) -> list[Any]:
        return [row[1] for _, row in found[name] if row[0] == word]

    for name in ("sum", "sum at 1", "reduce"):
        assert of(name, "a") == host.emitted([3, 4, 8]), name
        assert of(name, "b") == host.emitted([5, 7]), name
    assert of("state", "a") == [3, 4, 8]
    assert of("min", "a") == host.emitted([3, 1, 1])
    assert of("max_by", "a") == host.emitted([3, 3, 4])
    assert of("min_by", "b") == host.emitted([5, 2])
    assert of("rows as keys", "b") == host.emitted([5, 7])
    assert {type(row) for name, rows in found.items() if name != "rows as keys" for _, row in rows} == {Row}
    assert {tuple(row.as_dict()) for _, row in found["reduce"]} == {("word", "n")}


@on_every_host(hosts=(LOCAL, LOCAL_SQLITE, SPARK_BATCH), nightly=[SPARK])
def test_the_kind_of_a_row_is_kept(host: Host) -> None:
    rows = [Row.of_kind(kind, "a", 1) for kind in RowKind]
    out = host.run(lambda env: env.from_collection(rows, WORD).key_by("word").map(lambda row: row, WORD))
    assert [row.get_row_kind() for row in out] == list(RowKind)


@on_every_host(hosts=(LOCAL, LOCAL_BATCH, SPARK_BATCH), nightly=[SPARK])
def test_a_value_of_a_source_that_does_not_fit(host: Host) -> None:
    with pytest.raises(
        StepFailed, match=r"step 'collection'[\s\S]*field 'n': the value 'many' is not of the type Integer"
    ):
        host.run(lambda env: env.from_collection([("a", 1), ("b", "many")], WORD))


@on_every_host(nightly=[SPARK])
def test_a_value_that_does_not_fit(host: Host) -> None:
    records = [("a", 1), ("b", "many")]

    def build(env: Any) -> Any:
        words = env.from_collection(records).key_by(lambda record: record[0])
        return words.map(lambda record: record, output_type=WORD).name("parse")

    with pytest.raises(EmberflowError) as caught:
        host.run(build)
    assert isinstance(caught.value, StepFailed)
    text = str(caught.value)
    assert "step 'parse'" in text
    assert (
        "emitted ('b', 'many'), which does not fit its declared type RowTypeInfo(word: String, n: Integer)"
        in text
    )
    assert "field 'n': the value 'many' is not of the type Integer" in text


@on_every_host(nightly=[SPARK])
def test_rows_in_state_survive_a_crash(host: Host, tmp_path: Path) -> None:
    source = TestSource([("a", 1), ("b", 1), Crash(), ("a", 2), Crash(), ("b", 3)])

    def build(env: Any) -> Any:
        words = env.add_source(source, type_info=WORD)
        return words.key_by("word").process(CountRows(), PAIR)

    out = host.run_to_files(build, tmp_path).values
    assert per_key(out) == {"a": [("a", 1.0), ("a", 3.0)], "b": [("b", 1.0), ("b", 4.0)]}


@on_every_host(hosts=(LOCAL, LOCAL_2, SPARK_BATCH), nightly=[SPARK])
def test_typed_records_are_printed_as_pyflink_prints_them(
    host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = host.environment(checkpoint_dir=folder)
        words = env.from_collection([("And", 5), ("or", 1)], WORD)
        words.print("rows")
        words.map(lambda row: tuple(row), output_type=PAIR).print("tuples")
        words.map(lambda row: row.n > 2, output_type=Types.BOOLEAN()).print("truth")
        words.map(lambda row: tuple(row)).print("undeclared")
        words.key_by("word").sum("n").filter(lambda row: row.n > 1).print("kept")
        env.execute()
    lines = {re.sub(r":\d+> ", "> ", line) for line in capfd.readouterr().out.splitlines()}
    assert lines == {
        "rows> +I[And,5]", "rows> +I[or,1]", "tuples> (And,5.0)", "tuples> (or,1.0)", "truth> true", "truth> false",
        "undeclared> ('And', 5)", "undeclared> ('or', 1)", "kept> +I[And,5]",
    }  # fmt: skip


@on_every_host(hosts=(LOCAL, LOCAL_2), nightly=[SPARK])
def test_several_subtasks_print_their_number(host: Host, capfd: pytest.CaptureFixture[str]) -> None:
    env = host.environment()
    env.from_collection(range(20)).key_by(lambda number: number).map(lambda number: number % 2).print()
    env.from_collection(["one"]).print("named").set_parallelism(1)
    env.execute()
    lines = capfd.readouterr().out.splitlines()
    prefixes = {line.partition("> ")[0] if "> " in line else "" for line in lines}
    assert prefixes == ({"named", "1", "2"} if host.parallelism == 2 else {"named", ""})


class Both(CoMapFunction):
    def map1(self, value: Row) -> Any:
        return value

    def map2(self, value: Row) -> Any:
        return value.word, 2 * value.n


class Largest(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Iterator[Any]:
        yield [key, max(row.n for row in elements)]


@on_every_host(hosts=(LOCAL, LOCAL_BATCH, LOCAL_SQLITE, LOCAL_2, SPARK_BATCH), nightly=[SPARK])
def test_types_of_windows_joins_and_connected_streams(host: Host) -> None:
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.n)

    def build(env: Any) -> Any:
        words = env.from_collection([("a", 1), ("a", 3), ("b", 12)], WORD).assign_timestamps_and_watermarks(
            in_time
        )
        windows = words.key_by("word").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        again = words.key_by("word").window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        joined = (
            words.join(words)
            .where(lambda row: row.word)
            .equal_to(lambda row: row.word)
            .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
            .apply(lambda left, right: (left.word, left.n * right.n), WORD)
        )
        return named("reduce", windows.reduce(lambda total, row: (row.word, total.n + row.n))).union(
            named("process", again.process(Largest(), WORD)),
            named(
                "sum",
                words.rebalance()
                .key_by("word")
                .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
                .sum("n"),
            ),
            named("join", joined),
            named("connect", words.connect(words).map(Both(), WORD)),
        )

    found = per_key(host.run(build))
    assert {type(row) for rows in found.values() for _, row in rows} == {Row}
    pairs = {name: sorted(tuple(row) for _, row in rows) for name, rows in found.items()}
    assert pairs == {
        "reduce": [("a", 4), ("b", 12)],
        "process": [("a", 3), ("b", 12)],
        "sum": [("a", 4), ("b", 12)],
        "join": [("a", 1), ("a", 3), ("a", 3), ("a", 9), ("b", 144)],
        "connect": [("a", 1), ("a", 2), ("a", 3), ("a", 6), ("b", 12), ("b", 24)],
    }
