"""Reports an agent's events to the event log and to listeners."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from emberflow.errors import EmberflowError, describe_cause
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.observability.event_log import EventLog, EventLogSettings, EventRecord, open_log
from emberflow.observability.event_logger import EventLogger
from emberflow.observability.listeners import EventContext, listener_calls
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.options import (
    AgentConfigOptions,
    EventLogLevel,
    LoggerType,
    is_type_level,
    level_of_type,
)

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun

_log = logging.getLogger("emberflow.agents")
_OFF = EventLogLevel.OFF.value
_OUTPUT = OutputEvent.EVENT_TYPE


class AgentRecorder:
    def __init__(
        self, agent: str, log: EventLog | EventLogger | None, listeners: list[Any], config: Configuration
    ) -> None:
        self._agent = agent
        self._event_log = log
        self._listeners = listener_calls(listeners)
        self._config = config
        self._levels: dict[str, str] = {}
        self.secrets: Collection[str] = ()
        """The secrets that the agent's resources were created with so far."""
        self.logs_calls = log is not None and config.get(AgentConfigOptions.EVENT_LOG_LEVEL).value != _OFF
        """Whether calls of models and tools have entries in the event log."""
        self.names_origins = log is not None and self._level(_OUTPUT) != _OFF
        """Whether events of later agents can refer to this agent's outputs in the event log."""

    @staticmethod
    def of(plan: AgentPlan) -> AgentRecorder | None:
        """None if there is neither a log nor a listener."""
        config = plan.config
        listeners: list[Any] = config.get(AgentConfigOptions.EVENT_LISTENERS) or []
        log = _opened(plan)
        return AgentRecorder(plan.name, log, listeners, config) if log or listeners else None

    def sees(self, event_type: str) -> bool:
        """Whether an event of this type is logged, or a listener receives it."""
        return bool(self._listeners) or (self._event_log is not None and self._level(event_type) != _OFF)

    def _level(self, event_type: str) -> str:
        level = self._levels.get(event_type)
        if level is None:
            level = self._levels[event_type] = level_of_type(self._config, event_type).value
        return level

    def event(self, run: AgentRun, event: Event) -> None:
        if self._event_log is not None:
            level = self._level(event.type)
            if level != _OFF:
                now_ms = run.scope.clock.now_ms()
                record = EventRecord(now_ms, self._agent, run.key, run.run_id, event, "event", level=level)
                record.secrets = self.secrets
                if run.origin is not None and event is run.first:
                    record.origin = run.origin
                self._event_log.record(record)
        for listener in self._listeners:
            try:
                listener(event, EventContext(self._agent, run.key, run.run_id, run.timestamp))
            except Exception as error:
                # A listener only observes; its failure must not fail the job.
                _log.warning("an event listener of agent %r failed: %s", self._agent, describe_cause(error))

    def call(self, run: AgentRun, entry: Event, kind: str) -> None:
        """A call of a model or a tool, described as an event."""
        if self._event_log is not None:
            record = EventRecord(run.now_ms(), self._agent, run.key, run.run_id, entry, kind)
            record.secrets = self.secrets
            self._event_log.record(record)

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
                    secrets=self.secrets,
                )
            )

    def flush(self) -> None:
        if self._event_log is not None:
            self._event_log.flush()

    def close(self) -> None:
        if self._event_log is not None:
            self._event_log.close()


def _opened(plan: AgentPlan) -> EventLog | EventLogger | None:
    config = plan.config
    level = config.get(AgentConfigOptions.EVENT_LOG_LEVEL).value
    directory = config.get(AgentConfigOptions.BASE_LOG_DIR)
    through_logging = config.get(AgentConfigOptions.EVENT_LOGGER_TYPE) is LoggerType.SLF4J
    if level == _OFF:
        if not any(is_type_level(key) for key in config.to_dict()):
            return None
        # Types with a level of their own are logged nevertheless.
        level = EventLogLevel.STANDARD.value
    if not (directory or through_logging):
        return None
    settings = EventLogSettings(
        directory=directory or "",
        level=level,
        max_string=config.get(AgentConfigOptions.EVENT_LOG_MAX_STRING_LENGTH),
        max_items=config.get(AgentConfigOptions.EVENT_LOG_MAX_ARRAY_ELEMENTS),
        max_depth=config.get(AgentConfigOptions.EVENT_LOG_MAX_DEPTH),
        max_file_bytes=config.get(AgentConfigOptions.EVENT_LOG_MAX_FILE_BYTES),
        max_files=config.get(AgentConfigOptions.EVENT_LOG_MAX_FILES),
    )
    if directory:
        return open_log(settings, plan.name)
    return EventLogger(settings, pretty=config.get(AgentConfigOptions.PRETTY_PRINT))
