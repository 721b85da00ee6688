"""The exits of a stage on Spark: records are collected per key group and sent as packet rows.

Used inside Spark's Python workers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from emberflow.connectors.sink import Sink
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.engines.spark.wire.packet_rows import PacketRow, count_row, sink_dest
from emberflow.errors import KeySelectorFailed, NotSerializable, describe_cause, shorten
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.events.key_groups import KeyGroups
from emberflow.events.packets import Packet, encode_cut, encode_packet
from emberflow.operators.operator import Receiver, take
from emberflow.operators.partitions.routing import Router, make_router
from emberflow.operators.watermarks.watermark_merge import hold_channel
from emberflow.plan.graphs.job_graph import Exchange
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.specs import SinkSpec

_groups: dict[int, KeyGroups] = {}


def key_groups(max_parallelism: int) -> KeyGroups:
    """One cache of keys per process."""
    found = _groups.get(max_parallelism)
    if found is None:
        found = _groups[max_parallelism] = KeyGroups(max_parallelism)
    return found


class _Columns:
    """Records collected for one group."""

    __slots__ = ("keys", "origins", "timestamps", "values", "watermarks")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.keys: list[Any] = []
        self.timestamps: list[Any] = []
        self.watermarks: list[int] = []
        self.origins: list[Any] = []

    def batch(self) -> Batch:
        origins = self.origins
        if origins:
            # The last records may have none.
            origins.extend([None] * (len(self.values) - len(origins)))
        return Batch(
            self.values, self.timestamps or None, self.watermarks or None, self.keys or None, origins or None
        )


class ExchangePacker:
    """Collects what one channel sends over one exchange."""

    def __init__(self, spec: JobSpec, exchange: Exchange) -> None:
        self._exchange = exchange
        self._dest = exchange.target_stage
        self._target = spec.graph.stream_graph.node(spec.graph.stages[exchange.target_stage].head).name
        self._groups = key_groups(spec.max_parallelism)
        self._ids = spec.group_numbers
        self._batch = spec.batch
        self._at_end = spec.at_end[exchange.source_stage]
        targets = spec.groups_of(exchange.target_stage)
        self._router = make_router(exchange, len(targets), self._groups)
        self._targets = [self._ids[group] for group in targets]
        """Who must hear of watermarks and broadcasts, as Spark sees them."""
        self._columns: list[_Columns | None] = [None] * len(targets)
        self._timed = self._marked = False
        """Whether what is collected by key has timestamps, and watermarks."""
        self._watermark: int | None = None
        self._sent_watermark = MIN_WATERMARK
        self._pending: list[PacketRow] = []
        self.channel = 0
        self.sequence = 0

    def on_batch(self, batch: Batch) -> None:
        keeps_marks = not (self._batch or self._at_end)
        if self._at_end and batch.watermarks is not None:
            self._watermark = max(batch.watermarks[-1], self._watermark or MIN_WATERMARK)
        marks = batch.watermarks if keeps_marks else None
        stamps = batch.timestamps
        if self._router is not None:
            self._route(self._router, Batch(batch.values, stamps, marks, batch.keys, batch.origins))
            return
        if self._exchange.edge.by_channel:
            group = self._groups[(self._exchange.id, self.channel)]
            columns = self._of(group)
            before = len(columns.values)
            columns.values.extend(batch.values)
            _extend(columns.timestamps, stamps, before, len(batch), None)
            _extend(columns.origins, batch.origins, before, len(batch), None)
            return
        groups, columns_of = self._groups, self._columns
        if stamps is not None or marks is not None or self._timed:
            marks = self._aligned(marks, len(batch))
        try:
            if batch.origins is not None:
                self._with_origins(Batch(batch.values, stamps, marks, batch.keys, batch.origins))
            elif not self._timed:
                for key, value in zip(batch.keys or (), batch.values, strict=True):
                    group = groups[key]
                    columns = columns_of[group]
                    if columns is None:
                        columns = self._of(group)
                    columns.values.append(value)
                    columns.keys.append(key)
            else:
                stamps = stamps or [None] * len(batch)
                for i, key in enumerate(batch.keys or ()):
                    group = groups[key]
                    columns = columns_of[group]
                    if columns is None:
                        columns = self._of(group)
                    columns.values.append(batch.values[i])
                    columns.keys.append(key)
                    columns.timestamps.append(stamps[i])
                    if marks is not None:
                        columns.watermarks.append(marks[i])
        except TypeError as error:
            raise unhashable(self._exchange, batch, error) from error

    def _with_origins(self, batch: Batch) -> None:
        """Records by key; `_aligned` was called."""
        groups, positions = self._groups, dict[int, list[int]]()
        for i, key in enumerate(batch.keys or ()):
            positions.setdefault(groups[key], []).append(i)
        for group, chosen in positions.items():
            columns, part = self._of(group), take(batch, chosen)
            before, count = len(columns.values), len(chosen)
            columns.values.extend(part.values)
            columns.keys.extend(part.keys or ())
            if self._timed:
                columns.timestamps.extend(part.timestamps or [None] * count)
            if part.watermarks is not None:
                columns.watermarks.extend(part.watermarks)
            _extend(columns.origins, part.origins, before, count, None)

    def _aligned(self, marks: Sequence[int] | None, count: int) -> Sequence[int] | None:
        """The watermarks of `count` records. Batches with and without timestamps or watermarks may follow each other, and
        every column that a group has must have an item for each of its records."""
        collected = [columns for columns in self._columns if columns is not None]
        if not self._timed:
            self._timed = True
            for columns in collected:
                columns.timestamps.extend([None] * len(columns.values))
        if marks is None:
            return [MIN_WATERMARK] * count if self._marked else None
        if not self._marked:
            self._marked = True
            for columns in collected:
                columns.watermarks.extend([MIN_WATERMARK] * len(columns.values))
        return marks

    def _route(self, router: Router, batch: Batch) -> None:
        for group, part in [(0, batch)] if router.to_all else router.parts(batch):
            columns = self._of(group)
            before = len(columns.values)
            columns.values.extend(part.values)
            _extend(columns.timestamps, part.timestamps, before, len(part), None)
            _extend(columns.watermarks, part.watermarks, before, len(part), MIN_WATERMARK)
            _extend(columns.origins, part.origins, before, len(part), None)

    def _of(self, group: int) -> _Columns:
        found = self._columns[group]
        if found is None:
            found = self._columns[group] = _Columns()
        return found

    def on_watermark(self, watermark: int) -> None:
        self._watermark = watermark

    def hold(self, group: int, watermark: int | None) -> None:
        """A group of this stage is held back at this watermark; None releases it."""
        if self._batch:
            return
        edge, channel = hold_channel(self._exchange.id, group)
        mark = MAX_WATERMARK if watermark is None else watermark
        self.sequence += 1
        data = encode_packet(Packet(edge, channel, self.sequence, Batch([]), mark, True))
        self._pending.extend(PacketRow(number, self._dest, 0, mark, data) for number in self._targets)

    def open(self, context: Any) -> None:
        """Opens the user's partitioner, if the exchange has one."""
        if self._router is not None:
            self._router.open(context)

    def close(self) -> None:
        if self._router is not None:
            self._router.close()

    def select_channel(self, channel: int) -> None:
        """Switches to another channel: packs what the previous one has sent first."""
        if channel != self.channel:
            self._pending.extend(self._pack())
            self.channel = channel

    def take_rows(self) -> list[PacketRow]:
        """Everything collected so far, as rows."""
        rows = self._pending + self._pack()
        self._pending = []
        return rows

    def _pack(self) -> list[PacketRow]:
        rows: list[PacketRow] = []
        self._timed = self._marked = False
        watermark, self._watermark = self._watermark, None
        if self._batch:
            watermark = None
        elif watermark is not None and self._at_end:
            # All groups of a stage advance together: one broadcast per task is enough.
            if watermark <= self._sent_watermark:
                watermark = None
            else:
                self._sent_watermark = watermark
        if self._router is not None and self._router.to_all:
            columns, self._columns[0] = self._columns[0], None
            if columns is not None or watermark is not None:
                self._pack_group(rows, 0, columns or _Columns(), watermark)
            return [row._replace(kg=number) for row in rows for number in self._targets]
        for group, columns in enumerate(self._columns):
            if columns is None and watermark is None:
                continue
            self._columns[group] = None
            self._pack_group(rows, group, columns or _Columns(), watermark)
        return rows

    def _pack_group(
        self, rows: list[PacketRow], group: int, columns: _Columns, watermark: int | None
    ) -> None:
        def make(part: Batch, last: bool) -> Packet:
            self.sequence += 1
            mark = watermark if last else None
            return Packet(self._exchange.id, self.channel, self.sequence, part, mark, self._at_end)

        for packet, data in encoded(self._target, columns.batch(), make):
            mark = MIN_WATERMARK if packet.watermark is None else packet.watermark
            rows.append(PacketRow(self._ids[group], self._dest, len(packet.batch), mark, data))

    def sent_by(self, task: int, of_tasks: int, seed: int) -> None:
        """What follows is sent by this task of the stage; `seed` differs between micro-batches."""
        if self._router is not None:
            self._router.begin(task, of_tasks, seed)

    def new_batch(self, sequence: int) -> None:
        """Starts a new task; packets are numbered starting with `sequence`."""
        self.sequence = sequence
        # Leftovers of an abandoned attempt, if any.
        self._columns = [None] * len(self._columns)
        self._timed = self._marked = False
        self._sent_watermark = MIN_WATERMARK
        self._watermark = None
        self._pending = []


def _extend(column: list[Any], more: Sequence[Any] | None, before: int, count: int, missing: Any) -> None:
    """A column may begin late: with the first record that has a timestamp, or after a watermark."""
    if more is not None or column:
        column.extend([missing] * (before - len(column)))
        column.extend([missing] * count if more is None else more)


class SinkPacker:
    """Collects records for a sink."""

    def __init__(self, spec: JobSpec, node: StreamNode, number: int) -> None:
        assert isinstance(node.spec, SinkSpec)
        self._sink: Sink[Any] = node.spec.sink
        self._number = number
        self._dest = sink_dest(number)
        self._name = node.name
        self._batches: list[Batch] = []
        self._count = 0
        self.kg = 0
        self.sequence = 0

    def on_batch(self, batch: Batch) -> None:
        self._count += len(batch)
        if not self._sink.discards:
            self._batches.append(batch)

    def on_watermark(self, watermark: int) -> None:
        """Sinks ignore event time."""

    def take_rows(self) -> list[PacketRow]:
        if not self._count:
            return []
        batches, self._batches = self._batches, []
        count, self._count = self._count, 0
        values = [value for batch in batches for value in batch.values]
        timed = any(batch.timestamps is not None for batch in batches)
        stamps = (
            [stamp for batch in batches for stamp in (batch.timestamps or [None] * len(batch))]
            if timed
            else None
        )
        if self._sink.discards:
            return [count_row(self.kg, self._dest, count)]

        def make(part: Batch, last: bool) -> Packet:
            self.sequence += 1
            return Packet(self._number, 0, self.sequence, part)

        return [
            PacketRow(self.kg, self._dest, len(packet.batch), MIN_WATERMARK, data)
            for packet, data in encoded(self._name, Batch(values, stamps), make)
        ]

    def new_batch(self, sequence: int) -> None:
        self._batches = []
        self._count = 0
        self.sequence = sequence


class SparkExits:
    """All exits of one stage in one worker."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._sinks = [node.id for node in spec.graph.sinks]
        self.exchanges: list[ExchangePacker] = []
        self.sinks: list[SinkPacker] = []

    def exchange(self, exchange: Exchange) -> Receiver:
        made = ExchangePacker(self._spec, exchange)
        self.exchanges.append(made)
        return made

    def sink(self, node: StreamNode) -> Receiver:
        made = SinkPacker(self._spec, node, self._sinks.index(node.id))
        self.sinks.append(made)
        return made

    def take_rows(self) -> list[PacketRow]:
        rows: list[PacketRow] = []
        for item in (*self.exchanges, *self.sinks):
            rows.extend(item.take_rows())
        return rows

    def new_batch(self, sequence: int, kg: int) -> None:
        for item in (*self.exchanges, *self.sinks):
            item.new_batch(sequence)
        for sink in self.sinks:
            sink.kg = kg

    def select_channel(self, channel: int) -> None:
        for item in self.exchanges:
            item.select_channel(channel)

    def sent_by(self, task: int, of_tasks: int, seed: int = 0) -> None:
        for item in self.exchanges:
            item.sent_by(task, of_tasks, seed)

    def hold(self, group: int, watermark: int | None) -> None:
        for item in self.exchanges:
            item.hold(group, watermark)


def encoded(
    target: str, batch: Batch, make: Callable[[Batch, bool], Packet]
) -> Iterator[tuple[Packet, bytes]]:
    """The packets of a batch; an error names the step that was to receive the value."""
    try:
        yield from encode_cut(batch, make)
    except NotSerializable as error:
        error.message = error.message.replace("the next step", f"step {target!r}")
        error.committed = "nothing of the current batch was committed"
        raise


def unhashable(exchange: Exchange, batch: Batch, error: TypeError) -> Exception:
    for key, value in zip(batch.keys or (), batch.values, strict=True):
        try:
            hash(key)
        except TypeError:
            return KeySelectorFailed(
                f"the key {shorten(key)} of the value {shorten(value)} cannot be used as a key",
                cause=describe_cause(error),
                way_out="return strings, numbers or tuples of them from key_by()",
                committed="nothing of the current batch was committed",
            )
    return error
