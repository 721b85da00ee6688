"""Chat models: messages, connections, setups, prompts, and answers as typed values.

Vendors' clients are in `integrations/chat_models/`; the loop that lets a model call tools is in `agents/built_in/`.
"""
