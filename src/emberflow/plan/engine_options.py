"""The options of engines, by name; accepted by `env.set_option` and the environment's `configuration`."""

from __future__ import annotations

from enum import StrEnum

from emberflow.errors import InvalidArgument, did_you_mean, shorten


class EngineOption(StrEnum):
    """The names of engine options, for `env.set_option(name, value)`; plain strings are accepted too.

    ```python
    from emberflow.streams import EngineOption, StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.set_option(EngineOption.STATE_BACKEND, "sqlite")
    assert EngineOption.STATE_BACKEND == "state_backend"
    ```
    """

    ACCEPT_SINKS = "accept_sinks"
    """Continue without the output that a sink has lost."""
    CALL_STORE = "call_store"
    """Where the durable call log is stored."""
    CANCEL_TIMEOUT_MS = "cancel_timeout_ms"
    """How long `cancel()` waits for a job to stop."""
    CLOCK = "clock"
    """Another clock, for tests (local)."""
    DEADLINE_MS = "deadline_ms"
    """How long a micro-batch waits for calls (spark)."""
    MAX_RECORDS_PER_BATCH = "max_records_per_batch"
    """Maximum number of records of a micro-batch (spark)."""
    STATE_BACKEND = "state_backend"
    """`memory` or `sqlite` (local)."""
    TAKE_OVER = "take_over"
    """Replace a job that owns the checkpoint directory."""
    TRIGGER_MS = "trigger_ms"
    """The interval of micro-batches (spark)."""


ENGINE_OPTION_NAMES = [str(item) for item in EngineOption]


def check_option(name: object) -> None:
    """Raises InvalidArgument for an unknown name. Options of the other engine are accepted, so that a program can serve both."""
    if name in ENGINE_OPTION_NAMES:
        return
    raise InvalidArgument(
        f"there is no option {shorten(name)}{did_you_mean(name, ENGINE_OPTION_NAMES)}",
        way_out=f"the options are {', '.join(ENGINE_OPTION_NAMES)}",
    )
