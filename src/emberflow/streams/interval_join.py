"""`IntervalJoin`: two keyed streams, joined where the event times of their records are close enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

from emberflow.errors import InvalidArgument, NotKeyed, NotSupported
from emberflow.event_time.clock import Interval, to_ms
from emberflow.events.output_tag import OutputTag, SideOutput
from emberflow.operators.joins.join_context import JoinContext
from emberflow.plan.join_specs import LEFT, RIGHT, IntervalJoinSpec, SideOutputs
from emberflow.streams.data_stream import DataStream, method_of
from emberflow.streams.functions.join_functions import ProcessJoinFunction
from emberflow.streams.keyed_stream import KeyedStream

K = TypeVar("K", covariant=True)
T1 = TypeVar("T1", covariant=True)
T2 = TypeVar("T2", covariant=True)
R = TypeVar("R")


class IntervalJoin(Generic[K, T1, T2]):
    """Two keyed streams, before the interval is given; made by `KeyedStream.interval_join()`."""

    def __init__(self, left: KeyedStream[K, T1], right: KeyedStream[K, T2]) -> None:
        if not isinstance(right, KeyedStream):
            raise NotKeyed(
                "interval_join() needs another keyed stream",
                way_out="call key_by() on the other stream as well",
            )
        if left._env is not right._env:
            raise InvalidArgument("interval_join() needs streams of one environment")
        self._left = left
        self._right = right

    def in_event_time(self) -> Self:
        """The records' event times are compared, which is the default."""
        return self

    def in_processing_time(self) -> Self:
        """Raises `NotSupported`: as in Flink, interval joins are in event time only."""
        raise NotSupported(
            "an interval join in processing time is not possible",
            way_out="assign timestamps, e.g. the current time, to both streams",
        )

    def between(self, lower_bound: Interval, upper_bound: Interval) -> IntervalJoined[K, T1, T2]:
        """A left record at time l and a right one at time r are a pair if `l + lower_bound <= r <= l + upper_bound`.

        Bounds may be negative; a lower bound above the upper one raises `InvalidArgument`.
        """
        lower_ms, upper_ms = to_ms(lower_bound, "lower_bound"), to_ms(upper_bound, "upper_bound")
        if lower_ms > upper_ms:
            raise InvalidArgument(
                f"the lower bound ({lower_ms} ms) must not be above the upper bound ({upper_ms} ms)"
            )
        return IntervalJoined(self._left, self._right, lower_ms, upper_ms)


class IntervalJoined(Generic[K, T1, T2]):
    """Two keyed streams and the interval that joins them."""

    def __init__(
        self, left: KeyedStream[K, T1], right: KeyedStream[K, T2], lower_ms: int, upper_ms: int
    ) -> None:
        self._left = left
        self._right = right
        self._lower_ms = lower_ms
        self._upper_ms = upper_ms
        self._includes_lower = True
        self._includes_upper = True
        self._side_outputs = [SideOutputs(), SideOutputs()]

    def lower_bound_exclusive(self) -> Self:
        """A pair exactly at the lower bound does not count."""
        self._includes_lower = False
        return self

    def upper_bound_exclusive(self) -> Self:
        """A pair exactly at the upper bound does not count."""
        self._includes_upper = False
        return self

    def side_output_left_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Left records that are behind the watermark go to this side output; without one they are dropped."""
        self._side_outputs[LEFT] = replace(self._side_outputs[LEFT], late=output_tag)
        return self

    def side_output_right_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Right records that are behind the watermark go to this side output; without one they are dropped."""
        self._side_outputs[RIGHT] = replace(self._side_outputs[RIGHT], late=output_tag)
        return self

    def side_output_left_unmatched(self, output_tag: OutputTag[Any]) -> Self:
        """Left records that found no partner go to this side output, which makes the join a left outer join.

        They leave when the watermark has passed the end of their interval, at most a sixteenth of the interval later, and
        carry that time as their timestamp: with their own they would be late. Late records are not among them.
        """
        self._side_outputs[LEFT] = replace(self._side_outputs[LEFT], unmatched=output_tag)
        return self

    def side_output_right_unmatched(self, output_tag: OutputTag[Any]) -> Self:
        """As `side_output_left_unmatched`, for right records."""
        self._side_outputs[RIGHT] = replace(self._side_outputs[RIGHT], unmatched=output_tag)
        return self

    def process(
        self,
        process_join_function: ProcessJoinFunction[T1, T2, R]
        | Callable[[T1, T2, JoinContext], Iterable[R | SideOutput] | None],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Calls the function for every pair. Results carry the later timestamp of the two records.

        Each record is kept until the watermark has passed the end of its interval. An interval without any time in it,
        because of its exclusive bounds, raises `InvalidArgument`.

        ```python
        from collections.abc import Iterator

        from emberflow.streams import ProcessJoinFunction, StreamExecutionEnvironment, WatermarkStrategy


        class Paid(ProcessJoinFunction[tuple[str, int], tuple[str, int], str]):
            def process_element(
                self, left: tuple[str, int], right: tuple[str, int], ctx: ProcessJoinFunction.Context
            ) -> Iterator[str]:
                yield f"{left[0]}: paid after {ctx.get_right_timestamp() - ctx.get_left_timestamp()} ms"


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda event, before: event[1]
        )
        orders = env.from_collection([("o1", 0), ("o2", 10)]).assign_timestamps_and_watermarks(in_time)
        payments = env.from_collection([("o1", 700), ("o2", 2000)]).assign_timestamps_and_watermarks(in_time)
        paid = (
            orders.key_by(lambda order: order[0])
            .interval_join(payments.key_by(lambda payment: payment[0]))
            .between(0, 1000)
            .process(Paid())
        )
        assert list(paid.execute_and_collect()) == ["o1: paid after 700 ms"]
        ```
        """
        spec = IntervalJoinSpec(
            function=process_join_function,
            call=method_of(process_join_function, "process_element", "process()"),
            lower_ms=self._lower_ms + (not self._includes_lower),
            upper_ms=self._upper_ms - (not self._includes_upper),
            side_outputs=(self._side_outputs[LEFT], self._side_outputs[RIGHT]),
        )
        if spec.lower_ms > spec.upper_ms:
            raise InvalidArgument(
                f"no time lies between the bounds {self._lower_ms} ms and {self._upper_ms} ms without the bounds themselves",
                way_out="leave out lower_bound_exclusive() or upper_bound_exclusive(), or widen the interval",
            )
        edges = self._left._keyed_edges(LEFT) + self._right._keyed_edges(RIGHT)
        return self._left._added(spec, edges, "interval_join")._typed(output_type)
