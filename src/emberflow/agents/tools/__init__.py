"""Tools: functions that a model may call, their schemas, and arguments that the model does not see.

Tools of MCP servers are in `integrations/mcp/`; calls that a model asked for are made in `agents/built_in/`.
"""
