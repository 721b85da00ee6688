"""Records the decisions of a micro-batch's task that depend on timing, so that a repeated attempt does the same.

Spark repeats a micro-batch that it has not committed, and every sink ignores the output of a batch that it has already
committed. A repeated attempt must therefore have the same result: not only the same input (Spark stores offsets and the
batch's time), but also the same calls completed by the deadline, the same runs parked, the same failures of actions. For a
stage whose head `decides` such things, state writes, timers and rows are recorded per key group. The record is stored
before the task ends, after the answers that it depends on. The first record wins: every other attempt at the task replays
it instead of running the operators. It is dropped when the batch is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from emberflow.durable.decisions import DecisionStore
from emberflow.durable.records import Note, note_from_stored, note_to_stored
from emberflow.engines.spark.wire.packet_rows import PacketRow
from emberflow.errors import CheckpointUnusable, CorruptData, EngineFailed
from emberflow.events.codecs import decode, encode

_VERSION = 1
_QUERY = "query"
HOT = -1
"""Instead of the number of a bucket: the group's hot blob."""


class StateWrite(NamedTuple):
    """A change of a stage's state."""

    stage: int
    bucket: int
    """A bucket of the cold store, or HOT."""
    data: bytes | None
    """None if it is removed."""


@dataclass(slots=True)
class GroupRecord:
    """What processing one key group read and changed."""

    received: int = 0
    writes: list[StateWrite] = field(default_factory=list[StateWrite])
    timers: list[int] = field(default_factory=list[int])

    def to_stored(self, kg: int) -> tuple[Any, ...]:
        return kg, self.received, [tuple(item) for item in self.writes], self.timers

    @staticmethod
    def from_stored(stored: tuple[Any, ...]) -> tuple[int, GroupRecord]:
        kg, received, writes, timers = stored
        return kg, GroupRecord(received, [StateWrite(*item) for item in writes], timers)


class TaskRecord:
    """The record of one task: being written, or being replayed."""

    def __init__(self, store: DecisionStore, query: str, epoch: int, place: str) -> None:
        self._store = store
        self._name = _name(query, epoch, place)
        self._epoch = epoch
        self.groups: dict[int, GroupRecord] = {}
        self.rows: list[PacketRow] = []
        """The rows sent, in the order of sending, which is not that of groups: a call of one may complete while another one
        is processed."""
        self.ended: set[int] = set()
        """Stages whose input has ended."""
        # Spark has committed the previous batch.
        store.forget(_name(query, epoch - 1, place))
        found = store.find(self._name)
        self.replays = found is not None
        self.notes: list[Note] = []
        self._served: set[int] = set()
        if found is not None:
            self._load(found)

    def group(self, kg: int) -> GroupRecord:
        found = self.groups.get(kg)
        if found is None:
            found = self.groups[kg] = GroupRecord()
        return found

    # replaying

    def first_touch(self, kg: int) -> GroupRecord | None:
        """The group's record when it is requested for the first time."""
        if kg in self._served:
            return None
        self._served.add(kg)
        return self.groups.get(kg)

    def take_rows(self) -> Iterator[PacketRow]:
        """The rows sent; returned once."""
        rows, self.rows = self.rows, []
        yield from rows

    def check_received(self, received: dict[int, int]) -> None:
        """Raises unless the repeated attempt received the same input."""
        before = {kg: group.received for kg, group in self.groups.items() if group.received}
        if before != received or not self._served >= self.groups.keys():
            raise CheckpointUnusable(
                f"micro-batch {self._epoch} is repeated with different input: {sum(received.values()):,} records "
                f"in {len(received):,} key groups instead of {sum(before.values()):,} in {len(before):,}",
                cause="a source, or a function before the agent, returned different records for the same positions",
                way_out="make sources and functions return the same records again; to continue without what this batch "
                "had started, start from an earlier savepoint",
                committed="a sink may have committed the batch; it was not repeated",
            )

    # recording

    def store(self, notes: Iterable[Note]) -> None:
        """Called before the task ends. Raises if another attempt has stored its record in the meantime: what this one sent
        must not be committed."""
        # Omit groups with only pass-through rows: which groups carry them may depend on when a call completed.
        groups = [
            item.to_stored(kg)
            for kg, item in self.groups.items()
            if item.received or item.writes or item.timers
        ]
        rows = [tuple(row) for row in self.rows]
        data = encode((_VERSION, groups, rows, sorted(self.ended), [*map(note_to_stored, notes)]))
        if not self._store.decide(self._name, data):
            raise EngineFailed(
                f"another attempt at a task of micro-batch {self._epoch} has ended in the meantime",
                way_out="Spark repeats the task; if the job has failed, start it again",
                committed="this attempt's output was not committed",
            )

    def _load(self, data: bytes) -> None:
        version, *body = decode(data)
        if version != _VERSION:
            raise CorruptData(
                f"the decisions of micro-batch {self._epoch} have format {version}",
                way_out="update emberflow",
            )
        groups, rows, ended, notes = body
        self.rows = [PacketRow(*row) for row in rows]
        self.notes = [*map(note_from_stored, notes)]
        self.groups = dict(map(GroupRecord.from_stored, groups))
        self.ended = set(ended)


def check_query(store: DecisionStore, query: str) -> None:
    """Raises unless this is the first query that uses a job's directory, or that query restarted: two queries would take
    each other's calls for their own."""
    found = store.find(_QUERY)
    if found is None:
        store.decide(_QUERY, query.encode())
        found = store.find(_QUERY) or b""
    first = found.decode()
    if first != query:
        raise CheckpointUnusable(
            f"the checkpoint directory of this DataFrame belongs to the query {first}, not to {query}",
            cause="a DataFrame with a checkpoint_dir is for one streaming query and its checkpointLocation",
            way_out="start the query with the checkpointLocation that it had, or call to_dataframe() with an empty "
            "checkpoint_dir for another query",
            committed="nothing of the current batch was committed",
        )


def _name(query: str, epoch: int, place: str) -> str:
    return f"{query}.{epoch}.{place}"


class RecordedState:
    """The Spark state variables of one stage, for the group that is being processed; records all writes."""

    def __init__(self, number: int, hot: Any, cold: Any) -> None:
        self._number = number
        self._hot = hot
        self._cold = cold
        self.noted: GroupRecord | None = None
        self.known: set[int] = set()
        """Groups that have a hot blob, as far as this process knows."""

    def get_hot(self, kg: int) -> bytes | None:
        # Spark logs a warning when a missing value is read, so check first for a group that is not known.
        if kg not in self.known:
            if not self._hot.exists():
                return None
            self.known.add(kg)
        found = self._hot.get()
        return None if found is None else bytes(found[0])

    def put_hot(self, kg: int, data: bytes) -> None:
        self._hot.update((data,))
        # It is never cleared. If the batch is abandoned and the blob is missing after all, the next read costs a warning.
        self.known.add(kg)
        self._note(HOT, data)

    # the cold store of a GroupLayout

    def get(self, bucket: int) -> bytes | None:
        found = self._cold.getValue((bucket,))
        return None if found is None else bytes(found[0])

    def put(self, bucket: int, data: bytes) -> None:
        self._cold.updateValue((bucket,), (data,))
        self._note(bucket, data)

    def remove(self, bucket: int) -> None:
        self._cold.removeKey((bucket,))
        self._note(bucket, None)

    def _note(self, bucket: int, data: bytes | None) -> None:
        if self.noted is not None:
            self.noted.writes.append(StateWrite(self._number, bucket, data))

    def write_again(self, bucket: int, data: bytes | None) -> None:
        if data is None:
            self._cold.removeKey((bucket,))
        elif bucket == HOT:
            self._hot.update((data,))
        else:
            self._cold.updateValue((bucket,), (data,))
