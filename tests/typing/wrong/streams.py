"""Stream programs with mistakes that a type checker must find; each comment names the rule it reports in that line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from emberflow.streams import (
    AsyncDataStream,
    CoGroupFunction,
    DataStream,
    Encoder,
    FileSink,
    JoinFunction,
    KeyedProcessFunction,
    MapFunction,
    NumberSequenceSource,
    OutputTag,
    ProcessFunction,
    Sink,
    SinkFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
words = env.from_collection(["a", "b"])
sales = env.from_collection([("ann", 1), ("bob", 2)])
by_name = sales.key_by(lambda sale: sale[0])


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value * 2


class WrongReturn(MapFunction[int, int]):
    def map(self, value: int) -> str:  # error: reportIncompatibleMethodOverride
        return str(value)


class PerKey(KeyedProcessFunction[int, tuple[str, int], int]):
    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterable[int]:
        return [value[1]]


class PlainWords(ProcessFunction[str, int]):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterable[int]:
        ctx.get_current_key()  # error: reportAttributeAccessIssue
        return [len(value)]


class Numbers(SinkFunction[int]):
    pass


class NumberEncoder(Encoder[int]):
    pass


async def square(number: int) -> int:
    return number * number


def takes_numbers(sink: Sink[int]) -> None:
    words.sink_to(sink)  # error: reportArgumentType


words.map(Double())  # error: reportArgumentType
words.map(lambda word: word + 1)  # error: reportOperatorIssue
words.map(abs)  # error: reportArgumentType
words.map(3)  # error: reportArgumentType
words.flat_map(len)  # error: reportArgumentType
words.filter(Double())  # error: reportCallIssue, reportArgumentType
words.process(PerKey())  # error: reportArgumentType
by_name.process(PerKey())  # error: reportArgumentType
by_name.process(PlainWords())  # error: reportArgumentType
words.reduce(max)  # error: reportAttributeAccessIssue
by_name.reduce(lambda a, b: a[1] + b[1])  # error: reportCallIssue, reportArgumentType
by_name.window(timedelta(seconds=1))  # error: reportArgumentType
words.window(TumblingEventTimeWindows.of(1000))  # error: reportAttributeAccessIssue
words.get_side_output("late")  # error: reportArgumentType
words.sink_to(FileSink.for_row_format("out", NumberEncoder()).build())  # error: reportArgumentType
words.add_sink(Numbers())  # error: reportArgumentType
AsyncDataStream.ordered_wait(words, square, 1000)  # error: reportArgumentType
env.from_source([1, 2])  # error: reportArgumentType

numbers: DataStream[int] = words  # error: reportAssignmentType
late: DataStream[int] = words.get_side_output(OutputTag("late", str))  # error: reportAssignmentType
collected = env.from_source(NumberSequenceSource(1, 2)).execute_and_collect(limit=1)
first: str = collected[0]  # error: reportAssignmentType
all_of_them: list[str] = words.execute_and_collect()  # error: reportAssignmentType


class WordAndNumber(JoinFunction[str, int, str]):
    def join(self, first: str, second: int) -> str:
        return first * second


class Strings(CoGroupFunction[str, str, str]):
    pass


joined = words.join(sales).where(lambda word: word).equal_to(lambda sale: sale[0])
by_name.interval_join(words)  # error: reportArgumentType
joined.window(TumblingEventTimeWindows.of(5)).apply(WordAndNumber())  # error: reportArgumentType
grouped = words.co_group(sales).where(lambda word: word).equal_to(lambda sale: sale[0])
grouped.window(TumblingEventTimeWindows.of(5)).apply(Strings())  # error: reportArgumentType
