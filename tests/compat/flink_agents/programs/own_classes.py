"""Chat models and a tool written for Flink Agents; they are named by their paths."""

import uuid
from typing import Any, Dict, List, Sequence

from flink_agents.api.agents.types import OutputSchema
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.chat_models.chat_model import BaseChatModelConnection, BaseChatModelSetup
from flink_agents.api.resource import ResourceType
from flink_agents.api.tools.tool import Tool, ToolType
from pydantic import Field


class EchoConnection(BaseChatModelConnection):
    """Asks for a sum, and repeats what it was told."""

    greeting: str
    retries: int = Field(default=2, ge=0)

    def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: List[Tool] | None = None,
        output_schema: OutputSchema | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        self._reject_unsupported_output_schema(output_schema)
        last = messages[-1]
        if last.role == MessageRole.USER and "sum" in last.content:
            assert tools[0].name == "add"
            call = {
                "id": uuid.uuid4(),
                "type": ToolType.FUNCTION,
                "function": {"name": "add", "arguments": {"a": 1, "b": 2}},
            }
            return ChatMessage(role=MessageRole.ASSISTANT, content=last.content, tool_calls=[call])
        said = " / ".join(message.content for message in messages)
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=f"{self.greeting} {kwargs['temperature']} {self.retries}: {said}",
        )


class EchoSetup(BaseChatModelSetup):
    """Has a field of its own."""

    temperature: float = 0.5

    @property
    def model_kwargs(self) -> Dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature}


class WholeSetup(BaseChatModelSetup):
    """Does everything itself."""

    host: str
    limit: int = 3

    def open(self) -> None:
        """Nothing to connect."""

    @property
    def model_kwargs(self) -> Dict[str, Any]:
        return {"temperature": 0}

    def chat(
        self, messages: Sequence[ChatMessage], prompt_args: Dict[str, Any] | None = None, **kwargs: Any
    ) -> ChatMessage:
        server = self.resource_context.get_resource(self.connection, ResourceType.CHAT_MODEL_CONNECTION)
        prompt = self.resource_context.get_resource(self.prompt, ResourceType.PROMPT)
        filled = prompt.format_messages(**{name: str(value) for name, value in (prompt_args or {}).items()})
        answer = server.chat([*filled, *messages], tools=None, **self.model_kwargs)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"{self.host} {self.limit} {answer.content}")
