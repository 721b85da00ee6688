"""A running stage: the operators of one stage, wired together, with its exits to exchanges and sinks.

Engines create one per task, feed it, and collect the output at the exits. The stage does not know where its input comes
from or where its output goes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from emberflow.errors import (
    EmberflowError,
    KeySelectorFailed,
    NotSerializable,
    SourceFailed,
    describe_cause,
    shorten,
)
from emberflow.event_time.timestamps import checked
from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.key_groups import NoKeyGroup
from emberflow.events.list_keys import as_key
from emberflow.operators.async_wait import AsyncWaitOperator
from emberflow.operators.contexts import RuntimeContext
from emberflow.operators.factory import make_operator, step_of
from emberflow.operators.host_services import HostServices
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import (
    Operator,
    Output,
    Receiver,
    close_function,
    function_behind,
    open_function,
)
from emberflow.operators.partitions.operator_state import TaskState
from emberflow.operators.partitions.partitioned import NumberedTask, PartitionedHead
from emberflow.operators.typed_output import output_of
from emberflow.operators.watermarks.timestamp_assigner import TimestampsOperator, or_none_yet
from emberflow.operators.watermarks.watermark_generator import WatermarkGeneratorOperator
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.graphs.job_graph import Exchange, JobGraph, StageKind
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.operator_state import has_operator_state
from emberflow.plan.specs import SinkSpec


class Exits(Protocol):
    """Where a stage's output goes; created by the engine."""

    def exchange(self, exchange: Exchange) -> Receiver: ...

    def sink(self, node: StreamNode) -> Receiver: ...


class KeySelection:
    """Adds keys to batches on their way into an exchange."""

    def __init__(self, exchange: Exchange, step: StreamNode, target: Receiver) -> None:
        self._named = f"step {step.name!r}" + (f" ({step.location})" if step.location else "")
        self._step_name = step.name
        self._select = self._own_copy(exchange.edge.selector)
        self._hashed = exchange.edge.key_name is not None or exchange.edge.hashes
        self._given_to = (
            "the function given to key_by()"
            if exchange.edge.partitioner is None
            else "the key selector of the partitioner"
        )
        self._function = function_behind(self._select, "get_key")
        self._target = target

    def _own_copy(self, selector: Any) -> Any:
        """Every task has its own selector, like its own functions: `open()` may store things in it."""
        try:
            return copy.deepcopy(selector)
        except Exception as error:
            raise NotSerializable(
                f"the key selector before {self._named} cannot be copied for a task",
                cause=describe_cause(error),
                way_out="create locks, connections and files in open(), not where the selector is created",
            ) from error

    def open(self, subtask: int, parallelism: int, parameters: dict[str, str] | None) -> None:
        """Opens the selector and, behind it, a partitioner. Records have no key yet, so there is no keyed state."""
        context = RuntimeContext(self._step_name, None, subtask, parallelism, parameters)
        try:
            open_function(self._function, context)
            open_function(self._target, context)
        except BaseException as error:
            raise self._failed_in("open()", error) from error

    def close(self) -> None:
        try:
            close_function(self._function)
            close_function(self._target)
        except BaseException as error:
            raise self._failed_in("close()", error) from error

    def _failed_in(self, what: str, error: BaseException) -> BaseException:
        if isinstance(error, EmberflowError | KeyboardInterrupt):
            return error
        return KeySelectorFailed(
            f"the key selector before {self._named} failed in {what}",
            cause=describe_cause(error),
            way_out=f"fix {what} of the selector; --traceback shows the Python stack",
            committed="nothing of the current batch was committed",
        )

    def on_batch(self, batch: Batch) -> None:
        select = self._select
        if select is None:
            self._target.on_batch(batch)
            return
        keys: list[Any] = []
        append = keys.append
        value: Any = None
        try:
            for value in batch.values:
                append(select(value))
            if self._hashed and not _hashable(keys):
                keys = list(map(as_key, keys))
                for key, value in zip(keys, batch.values, strict=True):  # noqa: B007 - the error names the value
                    hash(key)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise KeySelectorFailed(
                f"the key selector before {self._named} failed for the value {shorten(value)}",
                cause=describe_cause(error),
                way_out=f"make {self._given_to} accept every value, or filter such values out before it",
                committed="nothing of the current batch was committed",
            ) from error
        try:
            self._target.on_batch(
                Batch(batch.values, batch.timestamps, batch.watermarks, keys, batch.origins)
            )
        except NoKeyGroup as error:
            raise KeySelectorFailed(
                f"the key {shorten(error.key)} before {self._named} cannot be sent to a task",
                cause=describe_cause(error.__cause__ or error),
                way_out="return strings, numbers, or tuples or frozen dataclasses of them from the function given to key_by()",
                committed="nothing of the current batch was committed",
            ) from error.__cause__

    def on_watermark(self, watermark: int) -> None:
        self._target.on_watermark(watermark)


def _open(operator: Operator, context: RuntimeContext) -> None:
    try:
        operator.open(context)
    except BaseException as error:
        raise operator.step.failed_in("open()", error) from error


def _hashable(keys: list[Any]) -> bool:
    try:
        set(keys)
    except TypeError:
        return False
    return True


class StageTask:
    """One stage's operators. `head` takes the packets of a keyed or partitioned stage; a source stage is fed through
    `entry`."""

    def __init__(
        self,
        graph: JobGraph,
        stage_id: int,
        exits: Exits,
        host: HostServices,
    ) -> None:
        stage = graph.stages[stage_id]
        stream_graph = graph.stream_graph
        self.stage = stage
        head_node = stream_graph.node(stage.head)
        self._source_name = head_node.name
        self.operators: dict[int, Operator] = {}
        self._selections: list[KeySelection] = []
        is_source = stage.kind is StageKind.SOURCE
        self.entry = output_of(head_node, step_of(head_node)) if is_source else Output()
        receivers: dict[int, Receiver] = {}
        for node_id in stage.nodes:
            node = stream_graph.node(node_id)
            if isinstance(node.spec, SinkSpec):
                receivers[node_id] = exits.sink(node)
            elif node_id != stage.head or stage.kind is not StageKind.SOURCE:
                operator = make_operator(node, host.clock, batch=host.batch)
                if host.calls is not None:
                    operator.connect(host)
                self.operators[node_id] = receivers[node_id] = operator
        for link in stage.links:
            self._output(link.source, link.side_tag).append(receivers[link.target])
        for item in graph.outputs_of(stage_id):
            target = stream_graph.node(graph.stages[item.target_stage].head)
            selection = KeySelection(item, target, exits.exchange(item))
            self._selections.append(selection)
            self._output(item.edge.source, item.edge.side_tag).append(selection)
        self.head = self._head(stream_graph.node(stage.head), receivers.get(stage.head))
        if self.head is not None:
            self.head.batch_mode = host.batch
            if host.in_turn and self.head.has_keys and not graph.traits_of(stage).keyed_by_channel:
                for operator in self.operators.values():
                    operator.in_turn = True
            self._give_task_state(self.head, receivers.get(stage.head), reads_all=host.reads_all_tasks)
            self.head.input_of = {item.id: item.input_index for item in graph.inputs_of(stage_id)}
        self._clocks = [
            item
            for item in self.operators.values()
            if isinstance(item, TimestampsOperator | AsyncWaitOperator)
        ]

    def _head(self, node: StreamNode, first: Receiver | None) -> KeyedOperator | None:
        if self.stage.kind is StageKind.SOURCE or isinstance(first, KeyedOperator):
            return first if isinstance(first, KeyedOperator) else None
        head = PartitionedHead(step_of(node))
        if first is not None:
            head.output.main.append(first)
        return head

    def _give_task_state(self, head: KeyedOperator, first: Receiver | None, *, reads_all: bool) -> None:
        function = first.function if isinstance(first, Operator) else None
        if isinstance(head, NumberedTask) and has_operator_state(function):
            head.task_state = TaskState(head, function, reads_all=reads_all)

    def _output(self, node_id: int, side_tag: str | None) -> list[Receiver]:
        operator = self.operators.get(node_id)
        output = self.entry if operator is None else operator.output
        return output.main if side_tag is None else output.side.setdefault(side_tag, [])

    def open(
        self,
        subtask: int = 0,
        parallelism: int = 1,
        parameters: dict[str, str] | None = None,
    ) -> None:
        state = self.head.task_state if isinstance(self.head, NumberedTask) else None
        for node_id, operator in self.operators.items():
            keyed = operator if isinstance(operator, KeyedOperator) and operator.has_keys else None
            context = RuntimeContext(operator.step.name, keyed, subtask, parallelism, parameters)
            if state is not None and node_id == self.stage.head:
                state.opens(subtask, parallelism, partial(_open, operator, context))
            else:
                _open(operator, context)
        for selection in self._selections:
            selection.open(subtask, parallelism, parameters)

    def sync(self) -> None:
        for operator in self.operators.values():
            operator.sync()

    def close(self) -> None:
        """Closes every operator, then raises the first error."""
        failures: list[BaseException] = []
        for operator in self.operators.values():
            try:
                operator.close()
            except BaseException as error:
                failures.append(operator.step.failed_in("close()", error))
        for selection in self._selections:
            try:
                selection.close()
            except BaseException as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def new_channel(self, channel: int | None = None, start: Any = None) -> None:
        """The next batches come from another channel, or the channel continues in another micro-batch: from `start`, if it is
        given."""
        for clock in self._clocks:
            clock.reset(channel, start)

    def feed(self, batch: Batch) -> None:
        """Records of a source."""
        if batch.timestamps is not None:
            batch = Batch(batch.values, self._checked(batch))
        self.entry.batch(batch)

    def _checked(self, batch: Batch) -> Sequence[int | None]:
        def reject(position: int, error: Exception) -> SourceFailed:
            return SourceFailed(
                f"source {self._source_name!r} gave the record {shorten(batch.values[position])} an invalid timestamp",
                cause=describe_cause(error),
                way_out="return milliseconds since 1970 from the source, or None for records without event time",
                committed="nothing of the current batch was committed",
            )

        return checked(or_none_yet(batch.timestamps or ()), "a timestamp", reject)

    def end_channel(self) -> None:
        """A source's channel has ended."""
        self.entry.watermark(MAX_WATERMARK)

    def on_channel_selected(self, select: Callable[[ChannelId], None]) -> None:
        """A custom watermark generator reports through `select` which channel's records it emits next."""
        if isinstance(self.head, WatermarkGeneratorOperator):
            self.head.select_channel = select

    def report_event_time(self, node_id: int, report: Callable[[ChannelId | None, int], None]) -> None:
        """Calls `report` with the watermark of a strategy's step behind each batch; a custom generator adds the channel."""
        operator = self.operators[node_id]
        if isinstance(operator, WatermarkGeneratorOperator):
            operator.report = report
        elif isinstance(operator, TimestampsOperator):
            operator.report = partial(report, None)

    @property
    def full(self) -> bool:
        """Whether a step has reached its limit of calls in flight; the stage's input should wait."""
        return any(operator.full for operator in self.operators.values())

    @property
    def calls_in_flight(self) -> int:
        return sum(operator.in_flight for operator in self.operators.values())

    @property
    def calls_in_background(self) -> int:
        """Calls in flight of detached runs."""
        return sum(operator.background for operator in self.operators.values())

    @property
    def calls_to_drain(self) -> int:
        """Calls that must end before state can be stored. A keyed head stores its own runs in flight."""
        return self.calls_in_flight - (0 if self.head is None else self.head.in_flight)
