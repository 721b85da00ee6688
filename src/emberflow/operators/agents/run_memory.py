"""An agent's memory as one run has it: the key's, the run's own, and the way back if the action fails.

While an action waits, a checkpoint is written of what memory was before the action began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberflow.event_time.clock import Clock
from emberflow.operators.scope import Scope
from emberflow.state.entry import Entry
from emberflow.state.memory import Change, Journal, Memory, Write, tree_size
from emberflow.state.pages import Fields

if TYPE_CHECKING:
    from emberflow.operators.agents.action_runner import ActionRunner

# Names in a key's entry.
MEMORY = "memory"
STAMPS = "memory_ms"
SIZE = "memory_size"


class RunMemory:
    """The lower part of a run."""

    __slots__ = (
        "_marks",
        "_sensory",
        "_sensory_root",
        "_short_term",
        "_undone",
        "agent",
        "entry",
        "journal",
        "scope",
    )

    def __init__(self, agent: ActionRunner, scope: Scope, entry: Entry) -> None:
        self.agent = agent
        self.scope = scope
        self.entry = entry
        self.journal = Journal()
        self._short_term: Memory | None = None
        self._sensory: Memory | None = None
        self._sensory_root: Fields | None = None
        self._undone: list[Change] | None = None
        self._marks: Any = None
        """What memory has to write, while a checkpoint is written without it."""

    def read_pages(self) -> None:
        """Reads all of the key's memory now: an action that waits may ask for it when the store cannot answer."""
        memory: Fields | None = self.entry.get(MEMORY)
        if memory is not None and memory.unread:
            memory.store = self.scope.pages
            memory.load_all()

    def short_term(self) -> Memory:
        found = self._short_term
        if found is None:
            found = self._short_term = self._open_short_term()
        return found

    def _open_short_term(self) -> Memory:
        entry, agent = self.entry, self.agent
        root: Fields | None = entry.get(MEMORY)
        if root is None:
            root = Fields()
        root.store = self.scope.pages
        stamps = None
        if agent.ttl_ms:
            stamps = entry.setdefault(STAMPS, {})

        def changed() -> None:
            entry[MEMORY] = root
            entry.dirty = True

        clock: Clock = self.scope.clock
        return Memory(
            "short-term", root, self.journal, agent.max_memory_bytes, entry.setdefault(SIZE, {}), changed,
            ttl_ms=agent.ttl_ms, refresh_on_read=agent.refresh_on_read, stamps=stamps, clock=clock,
        )  # fmt: skip

    def sensory(self) -> Memory:
        found = self._sensory
        if found is None:
            root = Fields() if self._sensory_root is None else self._sensory_root
            self._sensory_root = root
            totals = {"bytes": tree_size(root)}
            found = Memory("sensory", root, self.journal, self.agent.max_memory_bytes, totals)
            self._sensory = found
        return found

    def repeat(self, writes: list[Write]) -> None:
        """What an action wrote into a copy of this memory."""
        for kind, method, path, value in writes:
            memory = self.sensory() if kind == "sensory" else self.short_term()
            memory.repeat(method, path, value)

    def new_sensory(self, root: Fields | None) -> None:
        """Another input begins with none, or goes on with what was stored."""
        self._sensory = None
        self._sensory_root = root

    # checkpoints while an action waits

    def set_back(self) -> None:
        """Memory is as it was before the waiting action began."""
        memory: Fields | None = self.entry.get(MEMORY)
        if memory is not None:
            self._marks = memory.marks()
        self._undone = self.journal.suspend()

    def set_forth(self) -> None:
        """Memory is as it was before `set_back`."""
        if self._undone is not None:
            self.journal.proceed(self._undone)
            self._undone = None
        if self._marks is not None:
            self.entry[MEMORY].mark_again(self._marks)
            self._marks = None
