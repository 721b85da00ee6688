"""vLLM: OpenAI's interface, with structured output for every model."""

from __future__ import annotations

from typing import Any

from emberflow.agents.models.chat_model import BaseChatModelSetup
from emberflow.errors import InvalidArgument
from emberflow.integrations.chat_models.openai import OpenAICompatibleChatModelConnection


class VLLMChatModelConnection(OpenAICompatibleChatModelConnection):
    """A server started with `vllm serve`, by default on this machine. A key is needed only if it was started with one."""

    def __init__(
        self, *, base_url: str | None = None, api_base_url: str | None = None, **kwargs: Any
    ) -> None:
        address = (base_url or "").strip() or (api_base_url or "").strip() or "http://localhost:8000/v1"
        kwargs.setdefault("native_structured_output", True)
        super().__init__(base_url=address, **kwargs)


class VLLMChatModelSetup(BaseChatModelSetup):
    """A model that the server was started with."""

    def __init__(self, *, connection: Any, model: str = "", **kwargs: Any) -> None:
        if not model.strip():
            raise InvalidArgument("no model is specified for vLLM", way_out="model='…' as in `vllm serve …`")
        super().__init__(connection=connection, model=model, **kwargs)
