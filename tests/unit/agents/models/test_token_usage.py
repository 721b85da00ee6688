"""Token usage in answers, in the field names of common services."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import ChatMessage
from emberflow.agents.models.token_usage import TokenUsage

FORMS: dict[str, tuple[dict[str, Any], TokenUsage | None]] = {
    "prompt and completion": (
        {"usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7),
    ),
    "input and output": (
        {"usage": {"input_tokens": 3, "output_tokens": 4, "cost": 0.5}},
        TokenUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7, cost=0.5),
    ),
    "beside the others": (
        {"promptTokens": 1, "completionTokens": 2, "totalTokens": 4, "cost": 1},
        TokenUsage(prompt_tokens=1, completion_tokens=2, total_tokens=4, cost=1.0),
    ),
    "only a total": ({"usage": {"total_tokens": 9}}, TokenUsage(total_tokens=9)),
    "nothing": ({"external_id": "x"}, None),
    "nonsense": ({"usage": {"prompt_tokens": "many", "completion_tokens": True}}, None),
    "not a mapping": ({"usage": 5}, None),
    "not finite": ({"usage": {"prompt_tokens": float("inf"), "completion_tokens": float("nan")}}, None),
    "beyond any number of tokens": ({"usage": {"prompt_tokens": 10**400, "cost": 10**400}}, None),
    "a cost that no budget can count": (
        {"usage": {"total_tokens": 9, "cost": float("nan")}},
        TokenUsage(total_tokens=9),
    ),
    "a negative cost": ({"usage": {"total_tokens": 9, "cost": -1}}, TokenUsage(total_tokens=9)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    extra, expected = FORMS[form]
    assert ChatMessage(extra_args=extra).usage == expected


def test_a_message_without_extras_has_no_usage() -> None:
    assert ChatMessage(content="x").usage is None
