"""What agents can do without code of their own: chat with a model whose tools are called in between.

Used by `ctx.chat`, by the built-in actions for `ChatRequestEvent` and `ToolRequestEvent`, and by `ReActAgent`: one loop.
"""
