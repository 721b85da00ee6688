"""The options of agents, with their defaults. Keys follow Flink Agents where it has the option."""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import Enum
from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean
from emberflow.plan.agents.config import ConfigOption, Configuration
from emberflow.plan.cel.evaluation_budget import DEFAULT_STEPS


def _positive(value: Any) -> str | None:
    return None if value > 0 else "it must be greater than 0"


def _not_negative(value: Any) -> str | None:
    return None if value >= 0 else "it must not be negative"


class ErrorHandling(Enum):
    """What happens to an input whose action fails. `SKIP` never affects other inputs and keys."""

    FAIL = "fail"
    """The job stops with the error."""
    SKIP = "skip"
    """The run of the input ends and the error is logged; the effects of its finished actions remain."""
    DEAD_LETTER = "dead-letter"
    """Like `SKIP`, and the input goes to the dead letters together with the error."""


class ReplayMismatchHandling(Enum):
    """What happens when a repeated action makes different durable calls than were recorded."""

    FAIL = "fail"
    RESTART = "restart"
    """The recorded calls from there on are discarded and made again."""


class ConditionEvaluationFailureStrategy(Enum):
    """What happens when a trigger expression cannot be evaluated for an event."""

    WARN_AND_SKIP = "WARN_AND_SKIP"
    FAIL = "FAIL"


class ShortTermMemoryTtlUpdate(Enum):
    """What refreshes the time to live of short-term memory."""

    ON_CREATE_AND_WRITE = "ON_CREATE_AND_WRITE"
    ON_READ_AND_WRITE = "ON_READ_AND_WRITE"


class ShortTermMemoryTtlVisibility(Enum):
    """Whether expired short-term memory may be read until it is cleaned up. It is cleaned up at once: both mean the same."""

    NEVER_RETURN_EXPIRED = "NEVER_RETURN_EXPIRED"
    RETURN_EXPIRED_IF_NOT_CLEANED_UP = "RETURN_EXPIRED_IF_NOT_CLEANED_UP"


class LoggerType(Enum):
    """Where events are logged."""

    FILE = "file"
    """In files of JSON lines below `baseLogDir`; without a directory there is no log."""
    SLF4J = "slf4j"
    """Through Python's `logging`, by the logger `emberflow.event_log` at level INFO."""


class EventLogLevel(Enum):
    """How much of an event is logged."""

    OFF = "OFF"
    STANDARD = "STANDARD"
    VERBOSE = "VERBOSE"


class ErrorHandlingStrategy(Enum):
    """What the chat with a model does when a call of the model fails."""

    FAIL = "fail"
    """The action fails."""
    RETRY = "retry"
    """The model is called again, `max-retries` times, after a wait that doubles each time; then the action fails."""
    IGNORE = "ignore"
    """A `ChatRequestEvent` is not answered; the error is logged. `ctx.chat` fails, because it must return something."""


class HistoryStrategy(Enum):
    """How a chat is shortened for a model when it has more than `chat.history.max-tokens`."""

    KEEP_LAST = "keep-last"
    """The model receives the beginning, with the question, and the latest messages."""
    DROP_TOOL_RESULTS = "drop-tool-results"
    """Results of tools are left out, the oldest first; if that is not enough, like KEEP_LAST."""
    SUMMARIZE = "summarize"
    """A model summarizes what lies between the beginning and the latest messages."""


class AgentExecutionOptions:
    """Options of how agents run, for `get_config().set(option, value)`."""

    ON_ERROR = ConfigOption("on-error", ErrorHandling, ErrorHandling.FAIL)
    ON_REPLAY_MISMATCH = ConfigOption(
        "on-replay-mismatch", ReplayMismatchHandling, ReplayMismatchHandling.FAIL
    )
    MAX_STEPS = ConfigOption("max-steps", int, 1_000, _positive)
    """Actions that one input may trigger before its run is stopped."""
    MAX_IN_FLIGHT = ConfigOption("max-in-flight", int, 10_000, _positive)
    """Inputs of one task that may wait for calls; at this limit no more are read."""
    MAX_EVENT_BYTES = ConfigOption("max-event-bytes", int, 4 * 1024 * 1024, _positive)
    NUM_ASYNC_THREADS = ConfigOption("num-async-threads", int, 64, _positive)
    """Threads for blocking functions given to `durable_execute_async`."""
    SHORT_TERM_MEMORY_STATE_TTL_MS = ConfigOption("short-term-memory.state-ttl.ms", int, 0, _not_negative)
    """0: short-term memory never expires."""
    SHORT_TERM_MEMORY_STATE_TTL_UPDATE_TYPE = ConfigOption(
        "short-term-memory.state-ttl.update-type",
        ShortTermMemoryTtlUpdate,
        ShortTermMemoryTtlUpdate.ON_READ_AND_WRITE,
    )
    SHORT_TERM_MEMORY_STATE_TTL_VISIBILITY = ConfigOption(
        "short-term-memory.state-ttl.visibility",
        ShortTermMemoryTtlVisibility,
        ShortTermMemoryTtlVisibility.NEVER_RETURN_EXPIRED,
    )
    """Accepted for Flink Agents' programs: expired memory is never returned."""
    RAG_ASYNC = ConfigOption("rag.async", bool, True)
    """Accepted for Flink Agents' programs: calls of models and stores never block other keys."""
    MAX_MEMORY_BYTES = ConfigOption("memory.max-bytes", int, 16 * 1024 * 1024, _positive)
    """Short-term memory of one key, and sensory memory of one run."""
    ERROR_HANDLING_STRATEGY = ConfigOption(
        "error-handling-strategy", ErrorHandlingStrategy, ErrorHandlingStrategy.FAIL
    )
    MAX_RETRIES = ConfigOption("max-retries", int, 3, _not_negative)
    """How often a call of a model is repeated with the strategy RETRY."""
    RETRY_WAIT_INTERVAL = ConfigOption("retry-wait-interval", float, 1.0, _not_negative)
    """Seconds before the first of these retries; doubled for each further one."""
    CHAT_ASYNC = ConfigOption("chat.async", bool, True)
    """Accepted for Flink Agents' programs: the chat with a model never blocks other keys."""
    TOOL_CALL_ASYNC = ConfigOption("tool-call.async", bool, True)
    """Accepted for Flink Agents' programs: tools that a model asks for never block other keys."""
    CHAT_MAX_STEPS = ConfigOption("chat.max-steps", int, 50, _positive)
    """How often a chat calls its model before it must have the final answer."""
    CHAT_MAX_CORRECTIONS = ConfigOption("chat.max-corrections", int, 2, _not_negative)
    """How often a model may correct a reply that does not have the requested type."""
    CHAT_HISTORY_STRATEGY = ConfigOption("chat.history.strategy", HistoryStrategy, HistoryStrategy.KEEP_LAST)
    CHAT_HISTORY_MAX_TOKENS = ConfigOption("chat.history.max-tokens", int, 0, _not_negative)
    """Estimated tokens of the messages that a model receives; 0: all messages, whatever their length."""
    CHAT_SUMMARY_MODEL = ConfigOption("chat.history.summary-model", str, None)
    """The chat model that summarizes, by default the one that chats."""
    TOOL_CALL_TIMEOUT = ConfigOption("tool-call.timeout-ms", int, 600_000, _not_negative)
    """How long a tool that a model called may take; then the model receives an error. 0: no limit."""
    AGENT_RUN_BEGIN_EVENT = ConfigOption("agent-run.begin-event", bool, False)
    """Whether each input first sends an `AgentRunBeginEvent` with the values in short-term memory."""
    CALLS_BLOCK = ConfigOption("calls.block", bool, False)
    """Whether `model.chat(…)` and `tool.call(…)` return their answers in asynchronous actions, too, as in Flink Agents, for
    whose programs it is set. Nothing else of the task continues meanwhile."""
    EVENTS_AS_JSON = ConfigOption("events.as-json", bool, False)
    """Whether inputs, outputs and attributes of events arrive as JSON represents them, as in Flink Agents, for whose programs
    it is set: dataclasses as dictionaries, tuples as lists, dates as text."""


class AgentConfigOptions:
    """Options of trigger expressions, event logs and listeners, for `get_config().set(option, value)`."""

    CONDITION_EVALUATION_FAILURE_STRATEGY = ConfigOption(
        "action.trigger-condition.evaluate-failure-strategy",
        ConditionEvaluationFailureStrategy,
        ConditionEvaluationFailureStrategy.WARN_AND_SKIP,
    )
    CONDITION_MAX_STEPS = ConfigOption("action.trigger-condition.max-steps", int, DEFAULT_STEPS, _positive)
    """Steps that one evaluation of a trigger expression may take; exceeding it is a failure like any other. A step takes a
    few microseconds: one iteration of `all`, `exists`, …, or more if an iteration reads or copies large values."""
    BASE_LOG_DIR = ConfigOption("baseLogDir", str, None)
    """Where event logs are written; without it no files are written."""
    EVENT_LOGGER_TYPE = ConfigOption("eventLoggerType", LoggerType, LoggerType.FILE)
    """With `baseLogDir`, files are written whatever the type."""
    PRETTY_PRINT = ConfigOption("prettyPrint", bool, False)
    """Several indented lines for each event that is logged through `logging`. Files remain JSON lines."""
    JOB_IDENTIFIER = ConfigOption("job-identifier", str, None)
    """The name of the job, unless `execute` gets one."""
    EVENT_LOG_LEVEL = ConfigOption("event-log.level", EventLogLevel, EventLogLevel.STANDARD)
    EVENT_LOG_TRACE_ENABLED = ConfigOption("event-log.trace.enabled", bool, False)
    """Accepted for Flink Agents' programs: an event log always has the calls of models and tools."""
    EVENT_LOG_MAX_STRING_LENGTH = ConfigOption("event-log.standard.max-string-length", int, 2_000, _positive)
    EVENT_LOG_MAX_ARRAY_ELEMENTS = ConfigOption("event-log.standard.max-array-elements", int, 20, _positive)
    EVENT_LOG_MAX_DEPTH = ConfigOption("event-log.standard.max-depth", int, 5, _positive)
    EVENT_LOG_MAX_FILE_BYTES = ConfigOption("event-log.max-file-bytes", int, 64 * 1024 * 1024, _positive)
    EVENT_LOG_MAX_FILES = ConfigOption("event-log.max-files", int, 10, _positive)
    EVENT_LISTENERS: ConfigOption[list[Any] | None] = ConfigOption("event-listeners", list, None)
    """Callables `(event, context)`, called for every event in order."""


class MemoryEventOptions:
    """Which memory events are sent: an option of one kind decides before `memory.generate-event`, which decides before the
    defaults (on for writes and for long-term memory, off for reads). Only events that an action, a listener or the event log
    sees are created."""

    MEMORY_GENERATE_EVENT = ConfigOption("memory.generate-event", bool)
    SHORT_TERM_WRITE = ConfigOption("memory.generate-event.short-term-write", bool)
    SHORT_TERM_READ = ConfigOption("memory.generate-event.short-term-read", bool)
    SENSORY_WRITE = ConfigOption("memory.generate-event.sensory-write", bool)
    SENSORY_READ = ConfigOption("memory.generate-event.sensory-read", bool)
    LONG_TERM_UPDATE = ConfigOption("memory.generate-event.long-term-update", bool)
    """Without effect as yet, like the next two: there is no long-term memory."""
    LONG_TERM_GET = ConfigOption("memory.generate-event.long-term-get", bool)
    LONG_TERM_SEARCH = ConfigOption("memory.generate-event.long-term-search", bool)


_TYPE = "event-log.type."
_LEVEL = ".level"
_TYPE_LEVEL = re.compile(r"event-log\.type\.(?P<type>.+)\.level")


def is_type_level(key: str) -> bool:
    """Whether a key sets the log level of an event type: `event-log.type.<type>.level`. Raises InvalidArgument for one that
    begins so and ends otherwise."""
    if _TYPE_LEVEL.fullmatch(key) is not None:
        return True
    if key.startswith(_TYPE):
        raise InvalidArgument(
            f"there is no option {key!r}; did you mean {_type_level_like(key)!r}?",
            way_out="the only option of an event type is its level: event-log.type.<type>.level",
        )
    return False


def _type_level_like(key: str) -> str:
    event_type, dot, last = key[len(_TYPE) :].rpartition(".")
    meant = dot and get_close_matches(last, [_LEVEL[1:]])
    return f"{_TYPE}{event_type if meant else key[len(_TYPE) :].rstrip('.') or '<type>'}{_LEVEL}"


def level_of_type(config: Configuration, event_type: str) -> EventLogLevel:
    """The log level of an event type: its own, that of the longest prefix of its dotted name, or `event-log.level`."""
    name = event_type
    while name:
        level = ConfigOption(f"event-log.type.{name}.level", EventLogLevel)
        found = config.get(level)
        if found is not None:
            return found
        name = name.rpartition(".")[0]
    return config.get(AgentConfigOptions.EVENT_LOG_LEVEL)


def all_options() -> dict[str, ConfigOption[Any]]:
    """Options by key; those for the log levels of event types (`event-log.type.<type>.level`) have names of their own."""
    return {
        option.get_key(): option
        for group in (AgentExecutionOptions, AgentConfigOptions, MemoryEventOptions)
        for option in vars(group).values()
        if isinstance(option, ConfigOption)
    }


def option_named(key: str) -> ConfigOption[Any]:
    """The option with this key; raises InvalidArgument, which suggests the closest one."""
    known = all_options()
    if is_type_level(key):
        return ConfigOption(key, EventLogLevel, EventLogLevel.STANDARD)
    if key not in known:
        raise InvalidArgument(
            f"there is no option {key!r}{did_you_mean(key, known)}",
            way_out="for keys of your own use set_str(key, value) and the like",
        )
    return known[key]
