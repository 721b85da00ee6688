"""The tokens that a model's answer consumed, as reported with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from emberflow.events.stored_types import stored_type

_PROMPT = ("prompt_tokens", "input_tokens", "promptTokens")
_COMPLETION = ("completion_tokens", "output_tokens", "completionTokens")
_TOTAL = ("total_tokens", "totalTokens")
_MOST = 2**53


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None
    """Money, if the service reports it."""

    @staticmethod
    def read(extra_args: Mapping[str, Any]) -> TokenUsage | None:
        """Reads it from a message's `extra_args`: under `usage` as services send it, or next to the other entries."""
        given: Any = extra_args.get("usage")
        found = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else extra_args
        prompt, completion, total = (_first(found, names) for names in (_PROMPT, _COMPLETION, _TOTAL))
        if prompt is None and completion is None and total is None:
            return None
        cost: Any = found.get("cost", extra_args.get("cost"))
        return TokenUsage(
            prompt_tokens=prompt or 0,
            completion_tokens=completion or 0,
            total_tokens=(prompt or 0) + (completion or 0) if total is None else total,
            cost=float(cost) if _is_amount(cost) else None,
        )


def _first(found: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = found.get(name)
        if _is_amount(value):
            return int(value)
    return None


def _is_amount(value: Any) -> TypeGuard[float]:
    """Whether a service can have meant it: budgets are compared with sums of such numbers. False for NaN, too."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
