"""`MCPTool`: a tool of an MCP server. Which server has it, and what it takes, is found out when it is first used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emberflow.agents.tools.function_tool import Tool, ToolMetadata, ToolType

if TYPE_CHECKING:
    from emberflow.integrations.mcp.mcp_server import MCPServer


class MCPTool(Tool):
    """A tool by its name; belongs to the process in which its servers are connected."""

    def __init__(self, name: str, servers: Sequence[MCPServer], metadata: ToolMetadata | None = None) -> None:
        self._name = name
        self._servers = servers
        self._server: MCPServer | None = servers[0] if metadata is not None else None
        if metadata is not None:
            self.metadata = metadata

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return self._name

    @classmethod
    def tool_type(cls) -> ToolType:
        """Always `ToolType.MCP`."""
        return ToolType.MCP

    async def prepare(self) -> None:
        """Finds the tool's server and description, so that reading `metadata` does not block. Raises ToolFailed."""
        await self._found()

    async def call(self, arguments: dict[str, Any] | None = None, /, **given: Any) -> Any:
        """Text, or a list of text, images and resources. Raises ToolFailed with the server's message, and if the server
        cannot be reached or the connection is lost."""
        server = await self._found()
        return await server.call_tool_async(self._name, {**(arguments or {}), **given})

    async def _found(self) -> MCPServer:
        if self._server is None:
            server, found = await self._servers[0].find_tool_async(self._name, self._servers)
            self.metadata, self._server = found, server
        return self._server

    def __getattr__(self, name: str) -> Any:
        # Asked for its description before it was prepared.
        if name != "metadata":
            raise AttributeError(name)
        server, found = self._servers[0].find_tool(self._name, self._servers)
        self.metadata, self._server = found, server
        return found

    def __repr__(self) -> str:
        return f"MCPTool({self._name!r})"
