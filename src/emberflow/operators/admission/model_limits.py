"""The limits that a connection's descriptor may set: `ResourceDescriptor(clazz=MyService, max_concurrent=8, …)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from emberflow.errors import InvalidAgent, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Settings of a connection's descriptor besides the arguments of its class. Each applies to the whole job."""

    max_concurrent: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    throttle_retries: int = 20
    """How often one call is retried after the service has answered "too many requests"."""
    max_waiting: int = 100_000
    """How many calls of one process may wait; one more is an error."""

    @staticmethod
    def taken_from(
        label: str, arguments: dict[str, Any], own: Sequence[str]
    ) -> tuple[ModelLimits, dict[str, Any]]:
        """The limits among a descriptor's arguments, and the remaining arguments. `own` are parameters of the class
        itself: an argument that is both is passed to both."""
        names = [item.name for item in fields(ModelLimits)]
        given = {name: arguments[name] for name in names if arguments.get(name) is not None}
        for name, value in given.items():
            whole = name in ("max_concurrent", "throttle_retries", "max_waiting")
            least = 0 if name == "throttle_retries" else 1
            if (
                isinstance(value, bool)
                or not isinstance(value, int if whole else int | float)
                or value < least
            ):
                kind = "a whole number" if whole else "a number"
                raise InvalidAgent(
                    f"the {label}: {name} is {shorten(value)}", way_out=f"give {kind} of at least {least}"
                )
        rest = {name: value for name, value in arguments.items() if name not in names or name in own}
        return ModelLimits(**given), rest

    def divided(self, parts: int) -> ModelLimits:
        """One of several equal shares, for processes that cannot share a ledger."""
        return ModelLimits(
            max_concurrent=None if self.max_concurrent is None else max(1, self.max_concurrent // parts),
            requests_per_minute=None
            if self.requests_per_minute is None
            else self.requests_per_minute / parts,
            tokens_per_minute=None if self.tokens_per_minute is None else self.tokens_per_minute / parts,
            throttle_retries=self.throttle_retries,
            max_waiting=self.max_waiting,
        )
