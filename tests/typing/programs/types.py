"""What a type checker infers from declared types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, assert_type

from emberflow.streams import (
    DataStream,
    Instant,
    KeyedProcessFunction,
    KeyedStream,
    NumberSequenceSource,
    OutputTag,
    ProcessFunction,
    Row,
    RowTypeInfo,
    StreamExecutionEnvironment,
    TupleTypeInfo,
    TypeInformation,
    Types,
)


@dataclass
class Word:
    word: str
    n: int


env = StreamExecutionEnvironment.get_execution_environment(engine="local")
WORD = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
rows = env.from_collection([("a", 1)], WORD)


def plain_types() -> None:
    assert_type(Types.STRING(), TypeInformation[str])
    assert_type(Types.CHAR(), TypeInformation[str])
    assert_type(Types.BIG_DEC(), TypeInformation[Decimal])
    assert_type(Types.SQL_DATE(), TypeInformation[date])
    assert_type(Types.INSTANT(), TypeInformation[Instant])


def nested_types() -> None:
    assert_type(WORD, RowTypeInfo)
    assert_type(Types.TUPLE([Types.STRING(), WORD]), TupleTypeInfo)
    assert_type(Types.OBJECT_ARRAY(WORD), TypeInformation[list[Row]])
    assert_type(Types.PRIMITIVE_ARRAY(Types.INT()), TypeInformation[list[int]])
    assert_type(Types.MAP(Types.STRING(), Types.LIST(Types.LONG())), TypeInformation[dict[str, list[int]]])


def sources() -> None:
    assert_type(rows, DataStream[Row])
    numbers = NumberSequenceSource(1, 3)
    assert_type(env.from_source(numbers, type_info=Types.DOUBLE()), DataStream[float])
    assert_type(env.add_source(numbers, type_info=Types.DOUBLE()), DataStream[float])
    assert_type(env.from_dataframe([], type_info=WORD), DataStream[Row])
    assert_type(env.from_dataframe([], type_info=Word), DataStream[Word])
    assert_type(env.from_dataframe([]), DataStream[dict[str, Any]])


class Words(ProcessFunction[Row, tuple[str, int]]):
    def process_element(self, value: Row, ctx: ProcessFunction.Context) -> Iterator[tuple[str, int]]:
        yield value.word, value.n


class Totals(KeyedProcessFunction[str, Row, list[object]]):
    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context[str]) -> Iterator[list[object]]:
        yield [value.word, value.n]


def steps() -> None:
    assert_type(rows.map(lambda row: (row.word, 1), output_type=WORD), DataStream[Row])
    assert_type(rows.map(lambda row: row.word), DataStream[Any])
    assert_type(rows.map(lambda row: row.n / 2, Types.INT()), DataStream[int])
    assert_type(rows.flat_map(lambda row: [(row.word, 1)], WORD), DataStream[Row])
    assert_type(rows.process(Words(), WORD), DataStream[Row])
    assert_type(rows.process(Words()), DataStream[tuple[str, int]])
    assert_type(rows.get_side_output(OutputTag("rest", WORD)), DataStream[Row])
    assert_type(rows.get_type(), TypeInformation[Any])


def keyed_steps() -> None:
    by_word = rows.key_by("word", key_type=Types.STRING())
    assert_type(by_word, KeyedStream[str, Row])
    assert_type(rows.key_by(0), KeyedStream[Any, Row])
    assert_type(by_word.sum("n"), DataStream[Row])
    assert_type(by_word.process(Totals(), WORD), DataStream[Row])
    assert_type(by_word.map(lambda row: [row.word, row.n], WORD), DataStream[Row])
    assert_type(by_word.flat_map(lambda row: [row], WORD), DataStream[Row])
