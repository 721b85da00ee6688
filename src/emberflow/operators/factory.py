"""Creates the operator for a step's spec."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from emberflow.errors import NotSerializable, describe_cause
from emberflow.event_time.clock import Clock
from emberflow.operators.agents.agent_operator import AgentOperator
from emberflow.operators.async_wait import AsyncWaitOperator
from emberflow.operators.contexts import PlainContext
from emberflow.operators.joins.interval_join import IntervalJoinOperator
from emberflow.operators.keyed_process import KeyedProcessOperator
from emberflow.operators.operator import Operator, Step
from emberflow.operators.partitions.broadcast import BroadcastOperator, KeyedBroadcastOperator
from emberflow.operators.partitions.partitioned import CoProcessOperator
from emberflow.operators.reduce import FinalReduceOperator, ReduceOperator
from emberflow.operators.stateless import FilterOperator, FlatMapOperator, MapOperator, ProcessOperator
from emberflow.operators.typed_output import isolation_of, output_of
from emberflow.operators.watermarks.timestamp_assigner import TimestampsOperator
from emberflow.operators.watermarks.watermark_generator import WatermarkGeneratorOperator
from emberflow.operators.windows.aligned_windows import AlignedWindowOperator
from emberflow.operators.windows.pane_windows import PaneWindowOperator
from emberflow.operators.windows.session_windows import SessionWindowOperator
from emberflow.operators.windows.triggered_windows import TriggeredWindowOperator
from emberflow.operators.windows.window_operator import WindowOperator
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.join_specs import IntervalJoinSpec
from emberflow.plan.partition_specs import BroadcastSpec, CoProcessSpec
from emberflow.plan.specs import (
    AgentSpec,
    AsyncSpec,
    FilterSpec,
    FlatMapSpec,
    KeyedProcessSpec,
    MapSpec,
    ProcessSpec,
    ReduceSpec,
    Spec,
    TimestampsSpec,
    WatermarkGeneratorSpec,
)
from emberflow.plan.window_specs import WindowSpec, WindowStrategy


def make_operator(node: StreamNode, clock: Clock, *, batch: bool = False) -> Operator:
    """The operator of any step except sources and sinks, which engines provide themselves. In batch mode some differ."""
    step, kind = step_of(node), type(node.spec)
    make = _BATCH_MAKERS.get(kind, _MAKERS[kind]) if batch else _MAKERS[kind]
    operator = make(step, _own_copy(node), clock)
    operator.output, operator.isolation = output_of(node, step), isolation_of(node)
    return operator


def step_of(node: StreamNode) -> Step:
    """Identifies a step in errors and metrics."""
    return Step(node.uid, node.name, f"{node.spec.kind} at {node.location}" if node.location else "")


def _own_copy(node: StreamNode) -> Spec:
    """Every task has its own function objects, as if they had been shipped to it: two tasks of one process must not find
    each other's state and connections in `self`."""
    try:
        return copy.deepcopy(node.spec)
    except Exception as error:
        raise NotSerializable(
            f"the function of step {node.name!r} ({node.location}) cannot be copied for a task",
            cause=describe_cause(error),
            way_out="create locks, connections and files in open(), not where the function object is created",
        ) from error


def _process(step: Step, spec: ProcessSpec, clock: Clock) -> Operator:
    return ProcessOperator(step, spec.function, spec.call, PlainContext(step.name, clock))


def _async(step: Step, spec: AsyncSpec, clock: Clock) -> Operator:
    return AsyncWaitOperator(
        step,
        spec.function,
        spec.call,
        ordered=spec.ordered,
        capacity=spec.capacity,
        timeout_ms=spec.timeout_ms,
        retry=spec.retry,
        on_timeout=spec.on_timeout,
    )


def _window(step: Step, spec: WindowSpec, clock: Clock) -> Operator:
    return _WINDOW_OPERATORS[spec.strategy](step, spec)


def _broadcast(step: Step, spec: BroadcastSpec, clock: Clock) -> Operator:
    if spec.with_keys:
        return KeyedBroadcastOperator(step, spec.function, spec.calls, spec.on_timer, spec.descriptors)
    return BroadcastOperator(step, spec.function, spec.calls, spec.descriptors, clock)


_WINDOW_OPERATORS: dict[WindowStrategy, type[WindowOperator]] = {
    WindowStrategy.ALIGNED: AlignedWindowOperator,
    WindowStrategy.PANES: PaneWindowOperator,
    WindowStrategy.SESSIONS: SessionWindowOperator,
    WindowStrategy.TRIGGERED: TriggeredWindowOperator,
}

_Make = Callable[[Step, Any, Clock], Operator]

_MAKERS: dict[type[Spec], _Make] = {
    MapSpec: lambda step, spec, _: MapOperator(step, spec.function, spec.call),
    FilterSpec: lambda step, spec, _: FilterOperator(step, spec.function, spec.call),
    FlatMapSpec: lambda step, spec, _: FlatMapOperator(step, spec.function, spec.call),
    ProcessSpec: _process,
    TimestampsSpec: lambda step, spec, _: TimestampsOperator(step, spec.strategy, per_batch=spec.per_batch),
    WatermarkGeneratorSpec: lambda step, spec, _: WatermarkGeneratorOperator(step, spec.strategy),
    KeyedProcessSpec: lambda step, spec, _: KeyedProcessOperator(
        step, spec.function, spec.calls, spec.on_timer
    ),
    BroadcastSpec: _broadcast,
    ReduceSpec: lambda step, spec, _: ReduceOperator(step, spec.function, spec.combine),
    WindowSpec: _window,
    AsyncSpec: _async,
    CoProcessSpec: lambda step, spec, clock: CoProcessOperator(step, spec.function, spec.calls, clock),
    AgentSpec: lambda step, spec, _: AgentOperator(step, spec),
    IntervalJoinSpec: lambda step, spec, _: IntervalJoinOperator(step, spec),
}

_BATCH_MAKERS: dict[type[Spec], _Make] = {
    TimestampsSpec: lambda step, spec, _: TimestampsOperator(step, spec.strategy, batch_mode=True),
    ReduceSpec: lambda step, spec, _: FinalReduceOperator(step, spec.function, spec.combine),
    IntervalJoinSpec: lambda step, spec, _: IntervalJoinOperator(step, spec, batch=True),
}
