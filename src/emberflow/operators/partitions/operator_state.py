"""Operator state: what a function without keys keeps per task, in lists that can be distributed again.

A step whose function is a `CheckpointedFunction` heads a partitioned stage; its state is the entry of its task in the
stage's scope. `redistributed` is what engines call when a step comes back with another number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument, NotSupported, ProgramChanged
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.partitions.broadcast_state import BroadcastState
from emberflow.operators.scope import Scope
from emberflow.state.descriptors import ListStateDescriptor, MapStateDescriptor
from emberflow.state.entry import Entry

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_LIST = "$list:"
_UNION = "$union:"
_KINDS = {_LIST: "a list", _UNION: "a union list"}
_RESTORED = "$restored"
"""Set by the first snapshot: an entry may be empty otherwise."""


class OperatorListState(Generic[T]):
    """A list of one task."""

    __slots__ = ("_entry", "_name")

    def __init__(self, name: str, entry: Callable[[], Entry]) -> None:
        self._name = name
        self._entry = entry

    def get(self) -> Iterable[T]:
        """The elements, as a copy."""
        return list(self._entry().get(self._name, ()))

    def add(self, value: T) -> None:
        """Appends an element."""
        entry = self._entry()
        entry.setdefault(self._name, []).append(value)
        entry.dirty = True

    def add_all(self, values: Iterable[T]) -> None:
        """Appends elements."""
        for value in values:
            self.add(value)

    def update(self, values: Iterable[T]) -> None:
        """Replaces the list."""
        entry = self._entry()
        entry[self._name] = list(values)
        entry.dirty = True

    def clear(self) -> None:
        """Removes all elements."""
        entry = self._entry()
        if entry.pop(self._name, None) is not None:
            entry.dirty = True

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class OperatorStateStore:
    """The operator state of one task, by name."""

    def __init__(self, state: TaskState) -> None:
        self._state = state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> OperatorListState[T]:
        """A list whose elements are distributed over the tasks in turn when their number changes. Raises
        `ProgramChanged` if the state was stored as a union list."""
        return OperatorListState(self._state.declared(_LIST, state_descriptor.name), self._state.entry)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> OperatorListState[T]:
        """A list that every task finds whole, with the elements of all tasks, after a restart. Raises `NotSupported` on
        Spark unless the step has one task, and `ProgramChanged` if the state was stored as a list that is distributed."""
        self._state.check_union(state_descriptor.name)
        return OperatorListState(self._state.declared(_UNION, state_descriptor.name), self._state.entry)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """A map that every task must change in the same way; each finds it again after a restart."""
        return BroadcastState(state_descriptor, self._state.operator)


class FunctionInitializationContext:
    """What `initialize_state` is given."""

    def __init__(self, store: OperatorStateStore, restored: bool) -> None:
        self._store = store
        self._restored = restored

    def is_restored(self) -> bool:
        """Whether there is state from before: the job was restarted, or started from a savepoint."""
        return self._restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """Where the function's lists are."""
        return self._store


class FunctionSnapshotContext:
    """What `snapshot_state` is given."""


class TaskState:
    """The operator state of the function at the head of a stage. `reads_all` says whether a restarted task finds what all
    tasks had stored."""

    def __init__(self, operator: KeyedOperator, function: Any, *, reads_all: bool) -> None:
        self.operator = operator
        self._function = function
        self._reads_all = reads_all
        self._task, self._tasks = 0, 1
        self._kinds: dict[str, str] = {}
        """Of the lists that the function has asked for, by name."""
        self._open: Callable[[], None] | None = None

    def opens(self, task: int, tasks: int, open_function: Callable[[], None]) -> None:
        """The function is opened after its state was initialized, which needs the scope."""
        self._task, self._tasks = task, tasks
        self._open = open_function

    def entered(self, scope: Scope) -> None:
        """The scope is there: the first time, the function gets its state."""
        if self._open is None:
            return
        opening, self._open = self._open, None
        context = FunctionInitializationContext(OperatorStateStore(self), _RESTORED in self.entry())
        try:
            self._function.initialize_state(context)
        except BaseException as error:
            raise self.operator.step.failed_in("initialize_state()", error) from error
        opening()

    def snapshot(self) -> None:
        """The scope is about to be stored."""
        try:
            self._function.snapshot_state(FunctionSnapshotContext())
        except BaseException as error:
            raise self.operator.step.failed_in("snapshot_state()", error) from error
        entry = self.entry()
        entry[_RESTORED] = True
        entry.dirty = True

    def entry(self) -> Entry:
        return self.operator.scope.entry(self._task)

    def declared(self, kind: str, name: str) -> str:
        """The name under which a list is stored; raises if it is, or was, one of the other kind."""
        other = _UNION if kind == _LIST else _LIST
        if self._kinds.setdefault(name, kind) != kind:
            raise InvalidArgument(
                f"step {self.operator.step.name!r} asks for the operator state {name!r} as {_KINDS[other]} and as {_KINDS[kind]}",
                way_out="give each list a name of its own",
            )
        if other + name in self.entry():
            raise ProgramChanged(
                f"step {self.operator.step.name!r} declares the operator state {name!r} as {_KINDS[kind]}, "
                f"but it was stored as {_KINDS[other]}",
                way_out="declare the state as it was, or give the new one another name: it starts empty",
                committed="the stored state was not changed",
            )
        return kind + name

    def check_union(self, name: str) -> None:
        if not self._reads_all and self._tasks > 1:
            raise NotSupported(
                f"step {self.operator.step.name!r} has {self._tasks} tasks and a union list state {name!r}",
                cause="Spark keeps state by key group: a task that is restarted cannot read the state of the others",
                way_out="call force_non_parallel() on the step, use get_list_state(), or run it on the local engine",
            )


def redistributed(entries: Mapping[Any, Mapping[str, Any]], tasks: int) -> dict[int, Entry]:
    """What each task gets of the entries that all tasks had stored: elements of lists in turn, whole unions."""
    known = [entries[task] for task in sorted(key for key in entries if isinstance(key, int))]
    made = {task: Entry() for task in range(tasks)}
    for name in {name: None for entry in known for name in entry}:
        if name == _RESTORED:
            for entry in made.values():
                entry[name] = True
            continue
        items = [item for entry in known for item in entry.get(name, ())]
        for task, entry in made.items():
            part = list(items) if name.startswith(_UNION) else items[task::tasks]
            if part:
                entry[name] = part
    for entry in made.values():
        entry.dirty = True
    return made


def united(entries: Mapping[Any, Entry], tasks: int) -> dict[int, Entry]:
    """The same for an unchanged number of tasks: lists stay where they are, unions are shared."""
    whole = redistributed(entries, tasks)
    for task, entry in whole.items():
        own = entries.get(task, Entry())
        for name in [name for name in {**entry, **own} if name.startswith(_LIST)]:
            entry.pop(name, None)
            if name in own:
                entry[name] = own[name]
    return whole
