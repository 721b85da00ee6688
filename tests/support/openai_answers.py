"""Answers in OpenAI's chat format, whole and in pieces."""

from __future__ import annotations

import json
from typing import Any

from tests.support.model_server import Answer

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(content: str | None = "Hello.", *, finish: str = "stop", **message: Any) -> Answer:
    said = {"role": "assistant", "content": content, **message}
    return Answer(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "gpt-test-2026",
            "choices": [{"index": 0, "message": said, "finish_reason": finish, "logprobs": None}],
            "usage": USAGE,
        }
    )


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"error": {"message": message, "type": "some_error", "param": None, "code": code}}
    return Answer(body, status=status, headers=named)


def stream(
    *deltas: dict[str, Any], finish: str | None = "stop", done: bool = True, cut: bool = False
) -> Answer:
    """`finish=None` and `done=False`: it stops half-way, politely; `cut`: the connection breaks."""
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": delta, "finish_reason": None}] for delta in ({"role": "assistant"}, *deltas)
    ]
    if finish is not None:
        choices.append([{"index": 0, "delta": {}, "finish_reason": finish}])
    events = [_event(choice, None) for choice in choices]
    if done:
        events += [_event([], USAGE), "data: [DONE]\n\n"]
    return Answer(events=events, cut=cut)


def _event(choices: list[dict[str, Any]], usage: Any) -> str:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-test-2026",
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(chunk)}\n\n"
