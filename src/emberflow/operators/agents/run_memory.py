"""An agent's memory as seen by one run: the key's memory, the run's own, and reverting both if the action fails.

While an action is in flight, a checkpoint stores memory as it was before the action started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberflow.event_time.clock import Clock
from emberflow.operators.scope import Scope
from emberflow.state.entry import Entry
from emberflow.state.memory import Change, Journal, Memory, Write, tree_size
from emberflow.state.pages import Fields

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_runtime import AgentSettings

# Names in a key's entry.
MEMORY = "memory"
STAMPS = "memory_ms"
SIZE = "memory_size"


def read_pages(entry: Entry, scope: Scope) -> None:
    """Reads all of a key's memory now: an action in flight may need it when the store cannot be accessed."""
    memory: Fields | None = entry.get(MEMORY)
    if memory is not None and memory.unread:
        memory.store = scope.pages
        memory.load_all()


class RunMemory:
    """Created when an action of the run first uses memory."""

    __slots__ = (
        "_entry",
        "_marks",
        "_scope",
        "_sensory",
        "_settings",
        "_short_term",
        "_undone",
        "journal",
        "sensory_root",
    )

    def __init__(self, settings: AgentSettings, scope: Scope, entry: Entry) -> None:
        self._settings = settings
        self._scope = scope
        self._entry = entry
        self.journal = Journal()
        self.sensory_root: Fields | None = None
        """The stored part of sensory memory."""
        self._short_term: Memory | None = None
        self._sensory: Memory | None = None
        self._undone: list[Change] | None = None
        self._marks: Any = None
        """Pending writes, set aside while a checkpoint is written without them."""

    def short_term(self) -> Memory:
        found = self._short_term
        if found is None:
            found = self._short_term = self._open_short_term()
        return found

    def _open_short_term(self) -> Memory:
        entry, settings = self._entry, self._settings
        root: Fields | None = entry.get(MEMORY)
        if root is None:
            root = Fields()
        root.store = self._scope.pages
        stamps = None
        if settings.memory_ttl_ms:
            stamps = entry.setdefault(STAMPS, {})

        def changed() -> None:
            entry[MEMORY] = root
            entry.dirty = True

        clock: Clock = self._scope.clock
        return Memory(
            "short-term", root, self.journal, settings.max_memory_bytes, entry.setdefault(SIZE, {}), changed,
            ttl_ms=settings.memory_ttl_ms, refresh_on_read=settings.refresh_on_read, stamps=stamps, clock=clock,
        )  # fmt: skip

    def sensory(self) -> Memory:
        found = self._sensory
        if found is None:
            root = Fields() if self.sensory_root is None else self.sensory_root
            self.sensory_root = root
            totals = {"bytes": tree_size(root)}
            found = Memory("sensory", root, self.journal, self._settings.max_memory_bytes, totals)
            self._sensory = found
        return found

    def repeat(self, writes: list[Write]) -> None:
        """Repeats what an action wrote into a copy of this memory."""
        for kind, method, path, value in writes:
            memory = self.sensory() if kind == "sensory" else self.short_term()
            memory.repeat(method, path, value)

    def new_sensory(self, root: Fields | None) -> None:
        """The next input starts with empty sensory memory, a restored one with what was stored."""
        self._sensory = None
        self.sensory_root = root

    # checkpoints while an action is in flight

    def set_back(self) -> None:
        """Reverts memory to its contents before the action in flight started."""
        memory: Fields | None = self._entry.get(MEMORY)
        if memory is not None:
            self._marks = memory.marks()
        self._undone = self.journal.suspend()

    def set_forth(self) -> None:
        """Restores memory to its contents before `set_back`."""
        if self._undone is not None:
            self.journal.proceed(self._undone)
            self._undone = None
        if self._marks is not None:
            self._entry[MEMORY].mark_again(self._marks)
            self._marks = None
