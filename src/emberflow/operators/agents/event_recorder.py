"""Reports an agent's events to the event log and to listeners."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from emberflow.errors import EmberflowError, describe_cause
from emberflow.events.agent_events import Event
from emberflow.observability.event_log import EventLog, EventLogSettings, EventRecord, open_log
from emberflow.observability.listeners import EventContext, listener_calls
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.options import AgentConfigOptions, EventLogLevel

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun

_log = logging.getLogger("emberflow.agents")


class AgentRecorder:
    def __init__(self, agent: str, log: EventLog | None, listeners: list[Any]) -> None:
        self._agent = agent
        self._event_log = log
        self._listeners = listener_calls(listeners)

    @staticmethod
    def of(plan: AgentPlan) -> AgentRecorder | None:
        """None if there is neither a log nor a listener."""
        config = plan.config
        directory = config.get(AgentConfigOptions.BASE_LOG_DIR)
        level = config.get(AgentConfigOptions.EVENT_LOG_LEVEL)
        listeners: list[Any] = config.get(AgentConfigOptions.EVENT_LISTENERS) or []
        log = None
        if directory and level is not EventLogLevel.OFF:
            settings = EventLogSettings(
                directory=directory,
                level=level.value,
                max_string=config.get(AgentConfigOptions.EVENT_LOG_MAX_STRING_LENGTH),
                max_items=config.get(AgentConfigOptions.EVENT_LOG_MAX_ARRAY_ELEMENTS),
                max_depth=config.get(AgentConfigOptions.EVENT_LOG_MAX_DEPTH),
                max_file_bytes=config.get(AgentConfigOptions.EVENT_LOG_MAX_FILE_BYTES),
                max_files=config.get(AgentConfigOptions.EVENT_LOG_MAX_FILES),
            )
            log = open_log(settings, plan.name)
        return AgentRecorder(plan.name, log, listeners) if log or listeners else None

    def event(self, run: AgentRun, event: Event) -> None:
        if self._event_log is not None:
            self._event_log.record(
                EventRecord(run.scope.clock.now_ms(), self._agent, run.key, run.run_id, event, "event")
            )
        for listener in self._listeners:
            try:
                listener(event, EventContext(self._agent, run.key, run.run_id, run.timestamp))
            except Exception as error:
                # A listener only observes; its failure must not fail the job.
                _log.warning("an event listener of agent %r failed: %s", self._agent, describe_cause(error))

    def failure(self, run: AgentRun, action: str, event: Event, error: EmberflowError) -> None:
        if self._event_log is not None:
            self._event_log.record(
                EventRecord(
                    run.scope.clock.now_ms(),
                    self._agent,
                    run.key,
                    run.run_id,
                    event,
                    "error",
                    str(error),
                    action,
                )
            )

    def flush(self) -> None:
        if self._event_log is not None:
            self._event_log.flush()

    def close(self) -> None:
        if self._event_log is not None:
            self._event_log.close()
