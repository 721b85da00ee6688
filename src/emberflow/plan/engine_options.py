"""The options of engines, by name; `env.set_option` and the environment's `configuration` take them."""

from __future__ import annotations

from difflib import get_close_matches

from emberflow.errors import InvalidArgument, shorten

ENGINE_OPTIONS: dict[str, str] = {
    "accept_sinks": "go on without the output that a sink has lost",
    "call_store": "where the log of durable calls is kept",
    "cancel_timeout_ms": "how long cancel() waits for a job to stop",
    "clock": "another clock, for tests (local)",
    "deadline_ms": "how long a micro-batch waits for calls (spark)",
    "max_records_per_batch": "records that a micro-batch reads at most (spark)",
    "state_backend": "memory or sqlite (local)",
    "take_over": "replace a job that owns the checkpoint directory",
    "trigger_ms": "the pace of micro-batches (spark)",
}


def check_option(name: object) -> None:
    """Raises for a name that no engine knows. Options of the other engine are accepted, so that a program can serve both."""
    if name in ENGINE_OPTIONS:
        return
    near = get_close_matches(str(name), ENGINE_OPTIONS, 1)
    raise InvalidArgument(
        f"there is no option {shorten(name)}" + (f"; did you mean {near[0]!r}?" if near else ""),
        way_out=f"the options are {', '.join(ENGINE_OPTIONS)}",
    )
