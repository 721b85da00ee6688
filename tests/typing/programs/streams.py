"""What a type checker infers for the steps of a stream program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeGuard, assert_type

from emberflow.streams import (
    AggregateFunction,
    AllWindowedStream,
    AsyncDataStream,
    AsyncFunction,
    CloseableIterator,
    CoGroupFunction,
    CoMapFunction,
    ConnectedStreams,
    CountEvictor,
    CountTrigger,
    CountWindow,
    DataGeneratorSource,
    DataStream,
    ElementContext,
    Encoder,
    EventTimeSessionWindows,
    FileSink,
    FileSource,
    GlobalWindow,
    GlobalWindows,
    IntervalJoined,
    IterableSource,
    JoinFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    KeySelector,
    MapFunction,
    NumberSequenceSource,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SideOutput,
    Source,
    StreamExecutionEnvironment,
    StreamFormat,
    TimeWindow,
    TumblingEventTimeWindows,
    Types,
    ValueState,
    ValueStateDescriptor,
    WatermarkStrategy,
    WindowContext,
    WindowedStream,
    WindowFunction,
)

Sale = tuple[str, int]
env = StreamExecutionEnvironment.get_execution_environment(engine="local")
words = env.from_collection(["a", "b"])
sales = env.from_collection([("ann", 1), ("bob", 2)])
by_name = sales.key_by(lambda sale: sale[0])


def takes_any_source(source: Source[object]) -> DataStream[object]:
    return env.add_source(source)


def takes_any_stream(stream: DataStream[object]) -> None:
    stream.print()


def sources() -> None:
    assert_type(words, DataStream[str])
    assert_type(sales, DataStream[tuple[str, int]])
    assert_type(env.from_sequence(1, 3), DataStream[int])
    assert_type(env.from_source(NumberSequenceSource(1, 3)), DataStream[int])
    assert_type(env.from_source(IterableSource(lambda: ["a"])), DataStream[str])
    assert_type(
        env.from_source(DataGeneratorSource(lambda index: (index, str(index)))), DataStream[tuple[int, str]]
    )
    assert_type(env.from_dataframe([{"a": 1}]), DataStream[dict[str, Any]])
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "in").build()
    assert_type(env.from_source(lines), DataStream[str])
    rows = FileSource.for_record_stream_format(StreamFormat.csv(), "in").process_static_file_set().build()
    assert_type(env.from_source(rows), DataStream[dict[str, str]])
    assert_type(takes_any_source(NumberSequenceSource(1, 3)), DataStream[object])


class Length(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return len(value)


class Upper(MapFunction):
    def map(self, value: str) -> str:
        return value.upper()


def letters(word: str) -> Iterator[str]:
    yield from word


def is_str(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def stateless_steps() -> None:
    assert_type(words.map(len), DataStream[int])
    counted: DataStream[tuple[str, int]] = words.map(lambda word: (word, 1))
    counted.print()
    assert_type(words.map(Length()), DataStream[int])
    assert_type(words.map(Length(), output_type=Types.INT()), DataStream[int])
    assert_type(words.map(int), DataStream[int])
    words.map(Upper()).print()
    assert_type(words.flat_map(letters), DataStream[str])
    assert_type(words.flat_map(lambda word: word.split()), DataStream[str])
    assert_type(words.flat_map(lambda word: [len(word)] if word else None), DataStream[int])
    assert_type(words.filter(lambda word: word), DataStream[str])
    assert_type(env.from_collection([1, "a"]).filter(is_str), DataStream[str])
    assert_type(words.union(words), DataStream[str])
    assert_type(words.union(sales), DataStream[str | Sale])
    assert_type(words.name("words").uid("words").set_parallelism(2), DataStream[str])
    assert_type(
        words.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()), DataStream[str]
    )
    takes_any_stream(words)


REJECTED = OutputTag("rejected", str)


class Parse(ProcessFunction[str, int]):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[int | SideOutput]:
        assert_type(ctx.timestamp(), int | None)
        assert_type(ctx.timer_service().current_watermark(), int)
        yield int(value) if value.isdigit() else (REJECTED, value)


def side_outputs() -> None:
    parsed = words.process(Parse())
    assert_type(parsed, DataStream[int])
    assert_type(REJECTED, OutputTag[str])
    assert_type(parsed.get_side_output(REJECTED), DataStream[str])
    assert_type(parsed.get_side_output(OutputTag[Sale]("sales")), DataStream[Sale])
    assert_type(parsed.get_side_output(OutputTag("late", Types.INT())), DataStream[int])


class Total(KeyedProcessFunction[str, Sale, int]):
    def process_element(self, value: Sale, ctx: ElementContext[str]) -> Iterator[int]:
        assert_type(ctx.get_current_key(), str)
        ctx.timer_service().register_event_time_timer(value[1])
        yield value[1]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[int]:
        return [timestamp]


class Unannotated(KeyedProcessFunction[str, Sale, int]):
    def process_element(self, value, ctx):
        assert_type(value, Sale)
        assert_type(ctx.get_current_key(), str)
        return [value[1]]


class Name(KeySelector[Sale, str]):
    def get_key(self, value: Sale) -> str:
        return value[0]


class Larger(ReduceFunction[Sale]):
    def reduce(self, value1: Sale, value2: Sale) -> Sale:
        return max(value1, value2)


def keyed_steps() -> None:
    assert_type(by_name, KeyedStream[str, tuple[str, int]])
    assert_type(sales.key_by(Name()), KeyedStream[str, tuple[str, int]])
    assert_type(by_name.process(Total()), DataStream[int])
    assert_type(by_name.process(Unannotated()), DataStream[int])
    assert_type(by_name.map(lambda sale: sale[1]), DataStream[int])
    assert_type(by_name.filter(lambda sale: sale[1] > 1), DataStream[tuple[str, int]])
    assert_type(by_name.flat_map(lambda sale: [sale[0]]), DataStream[str])
    assert_type(by_name.reduce(lambda a, b: (a[0], a[1] + b[1])), DataStream[tuple[str, int]])
    assert_type(by_name.reduce(Larger()), DataStream[tuple[str, int]])
    assert_type(by_name.sum(1), DataStream[tuple[str, int]])
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    assert_type(ones.reduce(lambda a, b: (a[0], a[1] + b[1])), DataStream[tuple[str, int]])
    assert_type(ones.reduce(Larger()), DataStream[tuple[str, int]])


class Mean(AggregateFunction[Sale, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Sale, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class Ends(ProcessWindowFunction[float, tuple[str, int, float], str, TimeWindow]):
    def process(
        self, key: str, context: WindowContext[TimeWindow], elements: Iterable[float]
    ) -> Iterable[tuple[str, int, float]]:
        assert_type(context.window().end, int)
        return [(key, context.window().end, element) for element in elements]


class Sales(WindowFunction[Sale, int, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[Sale]) -> Iterable[int]:
        return [window.start + len(list(inputs))]


class AllSales(ProcessAllWindowFunction[Sale, int, TimeWindow]):
    def process(self, context: WindowContext[TimeWindow], elements: Iterable[Sale]) -> Iterable[int]:
        seen = context.global_state().get_state(ValueStateDescriptor[int]("seen"))
        assert_type(seen, ValueState[int])
        return [context.window().end]


def windows() -> None:
    windowed = by_name.window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
    assert_type(windowed, WindowedStream[str, tuple[str, int], TimeWindow])
    assert_type(windowed.reduce(Larger()), DataStream[tuple[str, int]])
    assert_type(windowed.reduce(Larger(), Sales()), DataStream[int])
    ones = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    sums = ones.window(TumblingEventTimeWindows.of(1000)).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert_type(sums, DataStream[tuple[str, int]])
    assert_type(windowed.aggregate(Mean()), DataStream[float])
    assert_type(windowed.aggregate(Mean(), Ends()), DataStream[tuple[str, int, float]])
    assert_type(windowed.apply(Sales()), DataStream[int])
    assert_type(windowed.process(lambda key, context, sales: [key]), DataStream[str])
    assert_type(windowed.max_by(1), DataStream[tuple[str, int]])
    late = OutputTag[Sale]("late")
    fired = windowed.trigger(CountTrigger.of(2)).allowed_lateness(5).side_output_late_data(late)
    assert_type(fired.evictor(CountEvictor.of(1)), WindowedStream[str, tuple[str, int], TimeWindow])
    sessions = by_name.window(EventTimeSessionWindows.with_gap(timedelta(seconds=1)))
    assert_type(sessions.apply(Sales()), DataStream[int])
    assert_type(by_name.count_window(5), WindowedStream[str, tuple[str, int], CountWindow])
    assert_type(by_name.window(GlobalWindows.create()), WindowedStream[str, tuple[str, int], GlobalWindow])
    everything = by_name.window_all(TumblingEventTimeWindows.of(1000))
    assert_type(everything, AllWindowedStream[tuple[str, int], TimeWindow])
    assert_type(everything.reduce(Larger()), DataStream[tuple[str, int]])
    assert_type(everything.process(AllSales()), DataStream[int])
    assert_type(everything.aggregate(Mean()), DataStream[float])


class Either(CoMapFunction[str, Sale, int]):
    def map1(self, value: str) -> int:
        return len(value)

    def map2(self, value: Sale) -> int:
        return value[1]


class Joined(KeyedCoProcessFunction[str, str, Sale, bool]):
    def process_element1(self, value: str, ctx: KeyedCoProcessFunction.Context) -> Iterable[bool]:
        return [ctx.get_current_key() == value]

    def process_element2(self, value: Sale, ctx: KeyedCoProcessFunction.Context) -> Iterable[bool]:
        return [value[1] > 0]


def two_inputs() -> None:
    both = words.connect(sales)
    assert_type(both, ConnectedStreams[str, tuple[str, int]])
    assert_type(both.map(Either()), DataStream[int])
    keyed = both.key_by(lambda word: word, lambda sale: sale[0])
    assert_type(keyed, ConnectedStreams[str, tuple[str, int]])
    assert_type(keyed.process(Joined()), DataStream[bool])


class Within(ProcessJoinFunction[tuple[str, int], tuple[str, int], bool]):
    def process_element(
        self, left: tuple[str, int], right: tuple[str, int], ctx: ProcessJoinFunction.Context
    ) -> Iterable[bool]:
        assert_type(ctx.get_left_timestamp(), int)
        return [left[1] == right[1]]


class Longer(JoinFunction[str, tuple[str, int], float]):
    def join(self, first: str, second: tuple[str, int]) -> float:
        return second[1] / len(first)


class Lengths(CoGroupFunction[str, tuple[str, int], int]):
    def co_group(self, first: Iterable[str], second: Iterable[tuple[str, int]]) -> Iterable[int]:
        return [len(list(first)), len(list(second))]


def joins() -> None:
    by_name = sales.key_by(lambda sale: sale[0])
    interval = by_name.interval_join(by_name).between(0, 10).upper_bound_exclusive()
    assert_type(interval, IntervalJoined[str, tuple[str, int], tuple[str, int]])
    assert_type(interval.process(Within()), DataStream[bool])
    second = TumblingEventTimeWindows.of(1000)
    joined = words.join(sales).where(lambda word: word).equal_to(lambda sale: sale[0]).window(second)
    assert_type(joined.apply(Longer()), DataStream[float])
    assert_type(joined.apply(lambda word, sale: (word, sale[1])), DataStream[tuple[str, int]])
    groups = words.co_group(sales).where(lambda word: word).equal_to(lambda sale: sale[0]).window(second)
    assert_type(groups.apply(Lengths()), DataStream[int])


class Looked(AsyncFunction[str, int]):
    async def async_invoke(self, value: str) -> list[int]:
        return [len(value)]


async def look(word: str) -> bytes:
    return word.encode()


def asynchronous_steps() -> None:
    assert_type(AsyncDataStream.unordered_wait(words, look, 1000), DataStream[bytes])
    assert_type(AsyncDataStream.ordered_wait(words, Looked(), 1000), DataStream[int])


class SaleEncoder(Encoder[Sale]):
    def encode(self, value: Sale) -> bytes:
        return value[0].encode()


def results() -> None:
    assert_type(words.execute_and_collect(), CloseableIterator[str])
    assert_type(words.execute_and_collect("name"), CloseableIterator[str])
    assert_type(words.execute_and_collect(limit=2), list[str])
    assert_type(words.execute_and_collect("name", 2), list[str])
    with words.execute_and_collect() as iterator:
        assert_type(next(iterator), str)
    words.add_sink(print)
    words.sink_to(FileSink.for_row_format("out", Encoder.simple_string_encoder()).build())
    sales.sink_to(FileSink.for_row_format("out", SaleEncoder()).build())
