"""How an edge distributes records over the tasks of the step behind it, where that is not done by key.

Created by `streams/`, followed by `operators/partitions/routing.py`; frozen data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from emberflow.plan.specs import Spec


class PartitionerKind(Enum):
    """Which task of the next step a record is sent to; Flink's names."""

    CHANNEL = "channel"
    """The one that owns the channel the record came through: for custom watermark generators."""
    FORWARD = "forward"
    """The one with the number of the sending task."""
    HASH = "hash"
    """The one that owns the key group of the record's key."""
    REBALANCE = "rebalance"
    """Each task in turn."""
    RESCALE = "rescale"
    """Each task in turn of those that belong to the sending task."""
    SHUFFLE = "shuffle"
    """Any, evenly."""
    GLOBAL = "global"
    """The first."""
    BROADCAST = "broadcast"
    """All of them."""
    CUSTOM = "custom"
    """The one that the user's function returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioner:
    """`key` and `function` are those of HASH and CUSTOM: `function(key, number of tasks)`."""

    kind: PartitionerKind
    key: Callable[[Any], Any] | None = None
    function: Callable[[Any, int], Any] | None = None
    name: str = ""
    """What the function is called, for plans."""
    implied: bool = False
    """Not asked for by the program: a partitioner that it did ask for takes its place."""

    @property
    def label(self) -> str:
        return f"{self.kind.value}({self.name})" if self.name else self.kind.value


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec(Spec):
    """Stands between two steps of a program until it is frozen: its partitioner then belongs to the edges behind it."""

    kind: str = "partition"
    partitioner: Partitioner

    @property
    def keeps_type(self) -> bool:
        return True


BY_CHANNEL = Partitioner(kind=PartitionerKind.CHANNEL)
AS_SENT = Partitioner(kind=PartitionerKind.FORWARD, implied=True)
"""From task to task, where a step needs a stage of its own for another reason."""
IN_TURN = Partitioner(kind=PartitionerKind.REBALANCE, implied=True)
"""Where the parallelism of a step differs from that of the step before, as in Flink."""
BROADCAST = Partitioner(kind=PartitionerKind.BROADCAST)
