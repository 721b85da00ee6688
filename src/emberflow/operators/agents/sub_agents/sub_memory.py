"""The memory of a sub-agent: its own, kept with the memory of the key between calls, apart from that of its caller.

While it runs, it works on a copy; what its finished actions wrote is applied to the key's memory when the call has
succeeded, as writes of the calling action, which may still fail.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from emberflow.events.copies import copied
from emberflow.state.memory import Journal, Memory, Write, tree_size
from emberflow.state.memory_object import SUB_AGENTS
from emberflow.state.pages import Fields, Node

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_runtime import AgentSettings
    from emberflow.operators.agents.run_memory import RunMemory


class SubMemory:
    """The memory of one call. Stands in for a `RunMemory`."""

    __slots__ = ("_above", "_finished", "_prefix", "_sensory", "_settings", "_short_term", "journal")

    def __init__(self, settings: AgentSettings, above: RunMemory | SubMemory, agent: str) -> None:
        self._settings = settings
        self._above = above
        # Dots separate the names of a path.
        self._prefix = f"{SUB_AGENTS}.{agent.replace('.', '/')}"
        self._short_term: Memory | None = None
        self._sensory: Memory | None = None
        self._finished: list[Write] = []
        self.journal = Journal()

    def short_term(self) -> Memory:
        found = self._short_term
        if found is None:
            root = Fields(_copy(self._above.short_term(), self._prefix))
            totals = {"bytes": tree_size(root)}
            found = Memory("short-term", root, self.journal, self._settings.max_memory_bytes, totals)
            self._short_term = found
        return found

    def sensory(self) -> Memory:
        found = self._sensory
        if found is None:
            totals: dict[str, Any] = {}
            found = Memory("sensory", Fields(), self.journal, self._settings.max_memory_bytes, totals)
            self._sensory = found
        return found

    def keep(self) -> None:
        """An action has ended."""
        for kind, method, path, value in self.journal.writes:
            if kind != "sensory":
                # A copy: later actions may append to the same list, which is a write of its own.
                own = deepcopy(value) if value.__class__ is Node else copied(value)
                self._finished.append((kind, method, path, own))
        self.journal.clear()

    def hand_over(self) -> None:
        """The call has succeeded. Raises MemoryTooLarge."""
        if not self._finished:
            return
        above = self._above.short_term()
        for _, method, path, value in self._finished:
            above.repeat(method, f"{self._prefix}.{path}", value)


def _copy(memory: Memory, path: str) -> dict[str, Any]:
    node = memory.node(path)
    if node is None:
        return {}
    made: dict[str, Any] = {}
    for name, value in list(node.items()):
        below = f"{path}.{name}"
        if value.__class__ is Node:
            made[name] = Node(_copy(memory, below))
        elif memory.alive(below, value):
            made[name] = copied(memory.get(below))
    return made
