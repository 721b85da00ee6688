"""The options of agents, with their defaults. Keys follow Flink Agents where it has the option."""

from __future__ import annotations

from enum import Enum
from typing import Any

from emberflow.errors import InvalidArgument, did_you_mean
from emberflow.plan.agents.config import ConfigOption
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


class EventLogLevel(Enum):
    """How much of an event is logged."""

    OFF = "OFF"
    STANDARD = "STANDARD"
    VERBOSE = "VERBOSE"


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
    MAX_MEMORY_BYTES = ConfigOption("memory.max-bytes", int, 16 * 1024 * 1024, _positive)
    """Short-term memory of one key, and sensory memory of one run."""


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
    """Where event logs are written; without it there is no log."""
    EVENT_LOG_LEVEL = ConfigOption("event-log.level", EventLogLevel, EventLogLevel.STANDARD)
    EVENT_LOG_MAX_STRING_LENGTH = ConfigOption("event-log.standard.max-string-length", int, 2_000, _positive)
    EVENT_LOG_MAX_ARRAY_ELEMENTS = ConfigOption("event-log.standard.max-array-elements", int, 20, _positive)
    EVENT_LOG_MAX_DEPTH = ConfigOption("event-log.standard.max-depth", int, 5, _positive)
    EVENT_LOG_MAX_FILE_BYTES = ConfigOption("event-log.max-file-bytes", int, 64 * 1024 * 1024, _positive)
    EVENT_LOG_MAX_FILES = ConfigOption("event-log.max-files", int, 10, _positive)
    EVENT_LISTENERS: ConfigOption[list[Any] | None] = ConfigOption("event-listeners", list, None)
    """Callables `(event, context)`, called for every event in order."""


def all_options() -> dict[str, ConfigOption[Any]]:
    """Options by key."""
    return {
        option.get_key(): option
        for group in (AgentExecutionOptions, AgentConfigOptions)
        for option in vars(group).values()
        if isinstance(option, ConfigOption)
    }


def option_named(key: str) -> ConfigOption[Any]:
    """The option with this key; raises InvalidArgument, which suggests the closest one."""
    known = all_options()
    if key not in known:
        raise InvalidArgument(
            f"there is no option {key!r}{did_you_mean(key, known)}",
            way_out="for keys of your own use set_str(key, value) and the like",
        )
    return known[key]
