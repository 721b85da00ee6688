"""Answers in Anthropic's format, whole and in pieces."""

from __future__ import annotations

import json
from typing import Any

from tests.support.model_server import Answer

USAGE = {"input_tokens": 11, "output_tokens": 7}


def message(*blocks: dict[str, Any], stop: str = "end_turn") -> Answer:
    return Answer(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": USAGE,
        }
    )


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def tool_use(name: str, call_id: str = "toolu_1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def error(status: int, kind: str, said: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer({"type": "error", "error": {"type": kind, "message": said}}, status=status, headers=named)


def stream(*events: dict[str, Any], ends: bool = True, cut: bool = False) -> Answer:
    start = {"type": "message_start", "message": {**message().body, "stop_reason": None}}
    last: list[dict[str, Any]] = []
    if ends:
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        last = [{"type": "message_delta", "delta": delta, "usage": USAGE}, {"type": "message_stop"}]
    sent = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (start, *events, *last)]
    return Answer(events=sent, cut=cut)


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
