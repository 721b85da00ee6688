"""Chats of one run that wait for their tools, in sensory memory. Messages are only appended, never written again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from emberflow.agents.built_in.chat_loop import Chat
from emberflow.agents.built_in.compaction import Summary
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.plan.agents.memory_kinds import CHATS, WAITING_CHATS
from emberflow.state.memory_object import MemoryObject


def memory_name(event_id: Any) -> str:
    """The name in memory of what belongs to an event."""
    # A dot would separate the names of a path.
    return str(event_id).replace(".", "-")


class StoredChats:
    """By the id of the chat request; those that wait by the id of their tool request."""

    def __init__(self, memory: MemoryObject) -> None:
        self._memory = memory

    def keep(self, request_id: Any, chat: Chat, tool_request_id: Any) -> None:
        """Stores what was added to a chat that now waits for the tools of this tool request."""
        memory, place = self._memory, f"{CHATS}.{memory_name(request_id)}"
        found: int | None = memory.get(f"{place}.length")
        if found is None:
            memory.set(f"{place}.request", _request(request_id, chat))
        for message in chat.messages[found or 0 :]:
            memory.append(f"{place}.messages", message.to_dict())
        memory.set(f"{place}.length", len(chat.messages))
        stored = _summaries(memory, place)
        for summary in chat.summaries[len(stored) :]:
            memory.append(f"{place}.summaries", asdict(summary))
        memory.set(f"{WAITING_CHATS}.{memory_name(tool_request_id)}", request_id)

    def waits_for(self, tool_request_id: Any) -> bool:
        """Whether a chat of this run waits for the results of a tool request."""
        return self._memory.get(f"{WAITING_CHATS}.{memory_name(tool_request_id)}") is not None

    def waiting(self, tool_request_id: Any, calls: CallBranch) -> tuple[Any, Chat] | None:
        """The id of the chat request, and the chat, that waits for this tool request; None if there is none."""
        memory = self._memory
        request_id = memory.get(f"{WAITING_CHATS}.{memory_name(tool_request_id)}")
        if request_id is None:
            return None
        place = f"{CHATS}.{memory_name(request_id)}"
        request = cast("dict[str, Any]", memory.get(f"{place}.request"))
        schema = request["output_schema"]
        return request_id, Chat(
            calls=calls,
            model=request["model"],
            messages=[ChatMessage.from_dict(item) for item in memory.get(f"{place}.messages")],
            prompt_args=request["prompt_args"],
            schema=None if schema is None else OutputSchema.model_validate(schema),
            max_steps=request["max_steps"],
            given=request["given"],
            summaries=[Summary(**item) for item in _summaries(memory, place)],
        )

    def resume(self, tool_request_id: Any) -> None:
        """The chat no longer waits for this tool request."""
        waiting = f"{WAITING_CHATS}.{memory_name(tool_request_id)}"
        if self._memory.is_exist(waiting):
            self._memory.delete(waiting)

    def forget(self, request_id: Any) -> None:
        """The chat has ended."""
        if self._memory.is_exist(f"{CHATS}.{memory_name(request_id)}"):
            self._memory.delete(f"{CHATS}.{memory_name(request_id)}")


def _summaries(memory: MemoryObject, place: str) -> list[dict[str, Any]]:
    return memory.get(f"{place}.summaries") or []


def _request(request_id: Any, chat: Chat) -> dict[str, Any]:
    return {
        "id": request_id,
        "model": chat.model,
        "prompt_args": dict(chat.prompt_args or {}),
        "output_schema": None if chat.schema is None else chat.schema.model_dump(),
        "max_steps": chat.max_steps,
        "given": chat.given,
    }
