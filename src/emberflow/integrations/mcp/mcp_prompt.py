"""`MCPPrompt`: a prompt of an MCP server, filled in by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.prompt_text import Prompt

if TYPE_CHECKING:
    from emberflow.integrations.mcp.mcp_server import MCPServer


class MCPPrompt(Prompt):
    """A prompt by its name; belongs to the process in which its servers are connected."""

    def __init__(self, name: str, servers: Sequence[MCPServer]) -> None:
        super().__init__(f"MCP prompt {name}")
        self.name = name
        self._servers = servers

    async def messages_for(self, values: Mapping[str, Any], *, named: str = "") -> list[ChatMessage]:
        """The messages of the server; their roles are its own. Raises ToolFailed, also if an argument is missing."""
        return await self._servers[0].fill_prompt_async(self.name, values, self._servers)

    def fill_messages(
        self, values: Mapping[str, Any], role: MessageRole = MessageRole.SYSTEM
    ) -> list[ChatMessage]:
        """Like `messages_for`; blocks."""
        return self._servers[0].fill_prompt(self.name, values, self._servers)

    def messages_to_send(
        self, values: Mapping[str, Any], role: MessageRole = MessageRole.SYSTEM, *, named: str = ""
    ) -> list[ChatMessage]:
        """Like `messages_for`; blocks."""
        return self.fill_messages(values)

    def format_string(self, /, **kwargs: Any) -> str:
        """The text of the messages, one per line; blocks."""
        return "\n".join(message.content for message in self.fill_messages(kwargs))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"MCPPrompt({self.name!r})"
