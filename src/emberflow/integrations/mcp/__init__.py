"""Tools and prompts of MCP servers, with the official SDK (extra `mcp`)."""

from emberflow.integrations.mcp.mcp_prompt import MCPPrompt
from emberflow.integrations.mcp.mcp_server import MCPServer
from emberflow.integrations.mcp.mcp_tool import MCPTool

__all__ = ["MCPPrompt", "MCPServer", "MCPTool"]
