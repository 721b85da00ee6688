"""Which task of the next stage a record is sent to, where the edge has a partitioner.

The exits of both engines hold a `Router` per exchange. What it decides depends on the task, on where the task began
(`begin`) and on the records since then: a repeated micro-batch sends every record to the same task again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from operator import index
from typing import Any

from emberflow.errors import KeySelectorFailed, describe_cause, shorten
from emberflow.events.batch import Batch
from emberflow.events.key_groups import KeyGroups, stable_hash
from emberflow.operators.operator import close_function, function_behind, open_function, take
from emberflow.plan.graphs.job_graph import Exchange
from emberflow.plan.graphs.partitioning import Partitioner, PartitionerKind


def make_router(exchange: Exchange, tasks: int, groups: KeyGroups) -> Router | None:
    """None for an exchange that is distributed by key or by channel. `tasks` is the number of tasks behind it."""
    partitioner = exchange.edge.partitioner
    if partitioner is None or exchange.edge.by_channel:
        return None
    return Router(partitioner, tasks, groups)


class Router:
    def __init__(self, partitioner: Partitioner, tasks: int, groups: KeyGroups) -> None:
        self._partitioner = partitioner
        self._tasks = tasks
        self._groups = groups
        self.to_all = partitioner.kind is PartitionerKind.BROADCAST
        self._choose = _CHOICES[partitioner.kind]
        # As every task has functions of its own: it may count what it has seen.
        self._function: Any = copy.deepcopy(partitioner.function)
        self._next = 0
        self._candidates: Sequence[int] = range(tasks)
        self._task = 0

    def open(self, context: Any) -> None:
        open_function(function_behind(self._function, "partition"), context)

    def close(self) -> None:
        close_function(function_behind(self._function, "partition"))

    def begin(self, task: int, of_tasks: int, seed: int = 0) -> None:
        """The records that follow were sent by this task. `seed` differs between micro-batches, so that small ones do not
        all begin with the same target."""
        self._task = task
        self._next = task + seed
        if self._partitioner.kind is PartitionerKind.RESCALE:
            first = task * self._tasks // of_tasks
            last = max(first + 1, (task + 1) * self._tasks // of_tasks)
            self._candidates = range(first, last)
            self._next = seed

    def parts(self, batch: Batch) -> list[tuple[int, Batch]]:
        """The records for each task that gets some, in their order; not for a broadcast."""
        targets = self._choose(self, batch)
        if isinstance(targets, int):
            return [(targets, batch)]
        positions: dict[int, list[int]] = {}
        for position, target in enumerate(targets):
            positions.setdefault(target, []).append(position)
        return [(target, take(batch, positions[target])) for target in sorted(positions)]

    # one target for all records, or one for each

    def _forward(self, batch: Batch) -> int:
        return self._task % self._tasks

    def _global(self, batch: Batch) -> int:
        return 0

    def _in_turn(self, batch: Batch) -> int | list[int]:
        candidates, count = self._candidates, len(batch)
        if len(candidates) == 1:
            return candidates[0]
        start = self._next % len(candidates)
        self._next += count
        return list(islice(cycle(candidates), start, start + count))

    def _scattered(self, batch: Batch) -> list[int]:
        start, tasks = self._next, self._tasks
        self._next += len(batch)
        return [stable_hash((self._task, start + i)) % tasks for i in range(len(batch))]

    def _by_hash(self, batch: Batch) -> list[int]:
        groups, tasks, maximum = self._groups, self._tasks, self._groups.max_parallelism
        return [groups[key] * tasks // maximum for key in batch.keys or ()]

    def _custom(self, batch: Batch) -> list[int]:
        function, tasks, found = self._function, self._tasks, list[int]()
        value: Any = None
        try:
            for key, value in zip(batch.keys or (), batch.values, strict=True):  # noqa: B007 - the error names it
                found.append(_checked(function(key, tasks), tasks))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise KeySelectorFailed(
                f"the partitioner {self._partitioner.name} failed for the value {shorten(value)}",
                cause=describe_cause(error),
                way_out="make it return the number of a task, from 0 on, for every key",
                committed="nothing of the current batch was committed",
            ) from error
        return found


def _checked(found: Any, tasks: int) -> int:
    if found.__class__ is not int:
        # Of numpy, for instance.
        if isinstance(found, bool) or not hasattr(found, "__index__"):
            raise TypeError(f"it returned {shorten(found)}, not a whole number")
        found = index(found)
    if not 0 <= found < tasks:
        raise ValueError(f"it returned {found}, but the tasks are numbered from 0 to {tasks - 1}")
    return found


_Choice = Callable[[Router, Batch], "int | list[int]"]
_CHOICES: dict[PartitionerKind, _Choice] = {
    PartitionerKind.FORWARD: Router._forward,
    PartitionerKind.GLOBAL: Router._global,
    PartitionerKind.BROADCAST: Router._global,
    PartitionerKind.REBALANCE: Router._in_turn,
    PartitionerKind.RESCALE: Router._in_turn,
    PartitionerKind.SHUFFLE: Router._scattered,
    PartitionerKind.HASH: Router._by_hash,
    PartitionerKind.CUSTOM: Router._custom,
}
