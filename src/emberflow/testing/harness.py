"""Drives the operators of one stage directly: no engine, no thread, a manual clock.

    harness = OperatorHarness(lambda stream: stream.key_by(first).reduce(add))
    harness.send([("a", 1), ("a", 2)])
    assert harness.values == [("a", 1), ("a", 3)]

The stage is the keyed one of the program, or its source stage if nothing is keyed. `snapshot()` is what an engine would
store; a harness created from it continues exactly there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from emberflow.connectors.collection import CollectionSource
from emberflow.connectors.sink import DiscardingSink
from emberflow.errors import InvalidArgument
from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.codecs import decode, encode
from emberflow.operators.contexts import RuntimeContext
from emberflow.operators.host_services import CallService, HostServices
from emberflow.operators.operator import Receiver, function_behind, open_function
from emberflow.operators.scope import SavedScope, Scope
from emberflow.operators.stage import StageTask
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.graphs.job_graph import Exchange, JobGraph, StageKind, idle_timeouts
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.state.entry import Entry
from emberflow.streams.data_stream import DataStream
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.testing.manual_clock import ManualClock

MAIN = "main"
_ALL_KEYS = 2**62


@dataclass(frozen=True, slots=True)
class Emitted:
    """One emitted record, and the watermark in force before it."""

    value: Any
    timestamp: int | None
    watermark: int | None


class Outlet:
    """What one output of the stage emitted, in order: `Emitted` records and watermarks (plain ints)."""

    def __init__(self) -> None:
        self.log: list[Emitted | int] = []

    def on_batch(self, batch: Batch) -> None:
        """Called by the stage."""
        for i, value in enumerate(batch.values):
            stamp = None if batch.timestamps is None else batch.timestamps[i]
            mark = None if batch.watermarks is None else batch.watermarks[i]
            self.log.append(Emitted(value, stamp, mark))

    def on_watermark(self, watermark: int) -> None:
        """Called by the stage."""
        self.log.append(watermark)

    @property
    def records(self) -> list[Emitted]:
        """The records so far, without the watermarks between them."""
        return [item for item in self.log if isinstance(item, Emitted)]

    @property
    def values(self) -> list[Any]:
        """The values so far."""
        return [item.value for item in self.records]

    @property
    def watermarks(self) -> list[int]:
        """The watermarks so far."""
        return [item for item in self.log if isinstance(item, int)]


class _Outlets:
    """The stage's exits: every sink is an outlet under its name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Outlet] = {}

    def exchange(self, exchange: Exchange) -> Receiver:
        raise InvalidArgument(
            "a harness drives one stage", way_out="leave out what follows the next key_by()"
        )

    def sink(self, node: StreamNode) -> Receiver:
        return self.by_name.setdefault(node.name, Outlet())


class OperatorHarness:
    """`build(*streams)` receives one stream per input and returns a stream, or a dictionary of named streams (side
    outputs). `channels` is the number of channels of each input, `batch` whether it runs as in BATCH mode."""

    def __init__(
        self,
        build: Callable[..., DataStream[Any] | dict[str, DataStream[Any]]],
        *,
        inputs: int = 1,
        channels: int = 1,
        batch: bool = False,
        clock: ManualClock | None = None,
        calls: CallService | None = None,
        restore: bytes | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        graph = _compile(build, inputs)
        keyed = [stage for stage in graph.stages if stage.kind is not StageKind.SOURCE]
        if len(keyed) > 1:
            raise InvalidArgument(f"a harness drives one stage, but the program has {len(keyed)} keyed ones")
        stage = keyed[0] if keyed else graph.stages[0]
        self._outlets = _Outlets()
        self.stage = StageTask(
            graph, stage.id, self._outlets, HostServices(clock=self.clock, batch=batch, calls=calls)
        )
        self._inputs = graph.inputs_of(stage.id)
        self.scope: Scope | None = None
        if self.stage.head is not None:
            self.scope = self._scope(graph, channels, restore)
        self.stage.open()
        if self.stage.head is not None and self.scope is not None:
            self.stage.head.enter(self.scope)
        self._selectors = {item.id: _opened(item.edge.key) for item in self._inputs}

    def _scope(self, graph: JobGraph, channels: int, restore: bytes | None) -> Scope:
        saved: SavedScope | None = None
        entries: dict[Any, dict[str, Any]] = {}
        if restore is not None:
            saved, entries = decode(restore)
        idle = idle_timeouts(graph)
        return Scope(
            channels=[(item.id, channel) for item in self._inputs for channel in range(channels)],
            idle_ms={item.id: idle[item.id] for item in self._inputs if item.id in idle},
            clock=self.clock,
            saved=saved,
            entries={key: Entry(values) for key, values in entries.items()},
        )

    # input

    def send(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        watermarks: Sequence[int] | None = None,
        *,
        watermark: int | None = None,
        into: int = 0,
        channel: int = 0,
    ) -> None:
        """Sends a batch of one channel of an input; `watermarks[i]` is in force before record i, `watermark` after all."""
        head = self.stage.head
        if head is None:
            self.stage.feed(Batch(list(values), timestamps, watermarks))
            if watermark is not None:
                self.stage.entry.watermark(watermark)
            return
        exchange, where = self._channel(into, channel)
        key = self._selectors[exchange.id]
        keys = None if key is None else [key(value) for value in values]
        head.receive(
            exchange.input_index, where, Batch(list(values), timestamps, watermarks, keys), watermark
        )

    def watermark(self, watermark: int, *, into: int = 0, channel: int = 0) -> None:
        """Sends a watermark into one channel of an input."""
        self.send([], watermark=watermark, into=into, channel=channel)

    def end(self) -> None:
        """Ends every channel of every input."""
        if self.scope is None:
            self.watermark(MAX_WATERMARK)
            return
        for (exchange_id, channel), _, _ in self.scope.channels.saved():
            into = next(index for index, item in enumerate(self._inputs) if item.id == exchange_id)
            self.watermark(MAX_WATERMARK, into=into, channel=channel)

    def advance_clock(self, ms: int) -> None:
        """Advances processing time: due timers fire, expired state is removed and idle channels are excluded."""
        self.clock.advance(ms)
        if self.stage.head is not None:
            self.stage.head.fire_processing_timers()
            self.stage.head.remove_expired(_ALL_KEYS)
            self.stage.head.merge_watermarks()

    def _channel(self, into: int, channel: int) -> tuple[Exchange, ChannelId]:
        exchange = self._inputs[into]
        return exchange, (exchange.id, channel)

    # output

    def outlet(self, name: str = MAIN) -> Outlet:
        """One of the stage's outputs, by name."""
        return self._outlets.by_name[name]

    @property
    def values(self) -> list[Any]:
        """The values of the main output so far."""
        return self.outlet().values

    @property
    def log(self) -> list[Emitted | int]:
        """Records and watermarks of the main output so far, in order."""
        return self.outlet().log

    # state

    def snapshot(self) -> bytes:
        """The stage's state as an engine would store it."""
        assert self.scope is not None, "a stage without keys has no state"
        entries = {key: dict(entry) for key, entry in self.scope.entries.items() if entry}
        return encode((self.scope.saved(), entries))

    def close(self) -> None:
        """Closes the stage's functions."""
        self.stage.close()


def _opened(selector: Any) -> Any:
    """A key selector as the upstream stage would use it: a separate copy, opened."""
    own = copy.deepcopy(selector)
    open_function(function_behind(own, "get_key"), RuntimeContext("harness"))
    return own


def _compile(build: Callable[..., DataStream[Any] | dict[str, DataStream[Any]]], inputs: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    made = build(*(env.add_source(CollectionSource[Any]([])) for _ in range(inputs)))
    for name, stream in (made if isinstance(made, dict) else {MAIN: made}).items():
        stream.sink_to(DiscardingSink()).name(name)
    return env.job_graph("harness")
