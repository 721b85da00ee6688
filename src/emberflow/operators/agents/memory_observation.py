"""Memory events: what an action has read and written, as events of the run; and the event at the beginning of a run.

Only events that an action, a listener or the event log sees are created: the runtime has no `MemoryObservation` otherwise,
and pays nothing. The values are those of the action's journal, which is also in the recorded outcome of an action that
ended elsewhere: a repeated run has the same events.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event
from emberflow.events.memory_events import (
    MEMORY_EVENTS,
    AgentRunBeginEvent,
    MemoryEvent,
    SensoryReadEvent,
    SensoryWriteEvent,
    ShortTermReadEvent,
    ShortTermWriteEvent,
    json_value,
)
from emberflow.events.run_ids import format_begin_event, format_memory_event
from emberflow.plan.agents.memory_kinds import OWN_NAMES, generated_kinds
from emberflow.plan.agents.options import AgentExecutionOptions

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.agent_runtime import AgentRuntime
    from emberflow.operators.agents.execution import ActionExecution

_log = logging.getLogger("emberflow.agents")
_WRITES: dict[str, type[MemoryEvent]] = {"sensory": SensoryWriteEvent, "short-term": ShortTermWriteEvent}
_READS: dict[str, type[MemoryEvent]] = {"sensory": SensoryReadEvent, "short-term": ShortTermReadEvent}
BEGIN_ACTION = "agent_run_begin_action"
"""The sender of `AgentRunBeginEvent`, as in Flink Agents."""


class MemoryObservation:
    __slots__ = ("_reads", "_writes", "begins", "reads")

    def __init__(self, kinds: frozenset[str], *, begins: bool) -> None:
        self._writes = {name: kind for name, kind in _WRITES.items() if kind.EVENT_TYPE in kinds}
        self._reads = {name: kind for name, kind in _READS.items() if kind.EVENT_TYPE in kinds}
        self.reads = bool(self._reads)
        """Whether reads must be noted."""
        self.begins = begins
        """Whether a run begins with an event."""

    @staticmethod
    def of(runtime: AgentRuntime) -> MemoryObservation | None:
        """None if no event would be seen."""
        routes, recorder, config = runtime.routes, runtime.recorder, runtime.plan.config

        def is_seen(kind: str) -> bool:
            return routes.may_trigger(kind) or (recorder is not None and recorder.sees(kind))

        kinds = frozenset(kind for kind in generated_kinds(config) if is_seen(kind))
        begins = config.get(AgentExecutionOptions.AGENT_RUN_BEGIN_EVENT) and is_seen(
            AgentRunBeginEvent.EVENT_TYPE
        )
        return MemoryObservation(kinds, begins=begins) if kinds or begins else None

    def events(self, execution: ActionExecution) -> list[Event]:
        """The events of an action that has ended. None if a memory event triggered it, to prevent infinite recursion."""
        run = execution.run
        if execution.event.type in MEMORY_EVENTS or not run.uses_memory:
            return []
        memory = run.memory
        journal = memory.journal
        found: list[Event] = []
        for kind, event in self._reads.items():
            values = {
                path: value
                for (name, path), value in journal.reads.items()
                if name == kind and not _is_own(kind, path)
            }
            if values:
                found.append(self._event(execution, event, values))
        for kind, event in self._writes.items():
            paths = dict.fromkeys(
                path for name, _, path, _ in journal.writes if name == kind and not _is_own(kind, path)
            )
            if paths:
                tree = memory.sensory() if kind == "sensory" else memory.short_term()
                values = _in_json(event.EVENT_TYPE, {path: tree.written(path) for path in paths})
                if values:
                    found.append(self._event(execution, event, values))
        return found

    @staticmethod
    def _event(execution: ActionExecution, kind: type[MemoryEvent], values: dict[str, Any]) -> Event:
        run = execution.run
        event = kind.of_json(str(run.key), values)
        event.id = format_memory_event(run.run_id, run.steps, kind.EVENT_TYPE)
        event.upstream_event_id = execution.event.id
        event.upstream_action_name = execution.action.name
        return event

    @staticmethod
    def begin_event(run: AgentRun, started_by: Event) -> Event:
        """The event of a run that an input has started."""
        values = _in_json(AgentRunBeginEvent.EVENT_TYPE, run.memory.short_term().values())
        event = AgentRunBeginEvent.of_json(str(run.key), values)
        event.id = format_begin_event(run.run_id)
        event.upstream_event_id = started_by.id
        event.upstream_action_name = BEGIN_ACTION
        return event


def _is_own(kind: str, path: str) -> bool:
    return kind == "sensory" and path.partition(".")[0] in OWN_NAMES


def _in_json(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Without the values that JSON does not have: what an event cannot show must not fail the action."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        try:
            found[path] = json_value(value)
        except InvalidArgument as error:
            _log.warning("an event %r leaves out the memory at %r: %s", kind, path, error.cause)
    return found
