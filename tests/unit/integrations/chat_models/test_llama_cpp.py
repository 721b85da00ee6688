"""A real, small model inside this process."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Literal

import pytest

from emberflow.agents import (
    Agent,
    ChatChunk,
    ChatMessage,
    ChatModel,
    InputEvent,
    OutputEvent,
    OutputSchema,
    ResourceType,
)
from emberflow.errors import EmberflowError, InvalidArgument, ResourceFailed
from emberflow.integrations.chat_models.llama_cpp import LlamaCppChatModelConnection
from emberflow.testing import run_agent
from tests.support.small_model import small_model

YES_OR_NO = OutputSchema(Literal["yes", "no"])


def test_a_local_model_answers_streams_obeys_schemas_and_stops() -> None:
    made = LlamaCppChatModelConnection(small_model(), context_tokens=512)
    made = pickle.loads(pickle.dumps(made))
    made.open()
    asked = [ChatMessage(content="Is water wet?")]

    async def talk() -> None:
        chunks: list[ChatChunk] = []
        whole = await made.chat(asked, max_tokens=8, temperature=0.0, on_chunk=chunks.append)
        assert "".join(chunk.text for chunk in chunks) == whole.content
        assert whole.content
        assert whole.usage is not None
        assert 0 < whole.usage.completion_tokens <= 8
        assert whole.extra_args["finish_reason"] == "length"
        assert whole.extra_args["model_name"].startswith("SmolLM2")

        answer = await made.chat(asked, output_schema=YES_OR_NO, max_tokens=200, temperature=0.0)
        assert YES_OR_NO.parse(answer.content) in ("yes", "no")

        # A call that is given up makes room for the next one.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.chat(asked, max_tokens=5_000), 0.2)
        assert (await made.chat(asked, max_tokens=1)).content

        with pytest.raises(InvalidArgument, match="no setting 'temprature'; did you mean 'temperature'"):
            await made.chat(asked, temprature=1)
        with pytest.raises(EmberflowError, match="local model"):
            await made.chat([ChatMessage(content="word " * 2_000)], max_tokens=1)

    asyncio.run(talk())
    made.close()


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceFailed, match="no model at"):
        LlamaCppChatModelConnection(tmp_path / "missing.gguf").open()
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ResourceFailed, match=r"text\.gguf' cannot be loaded"):
        LlamaCppChatModelConnection(tmp_path / "text.gguf").open()


async def classify(event: InputEvent, ctx: object) -> None:
    answer = await ctx.chat("clerk", event.input, output_schema=YES_OR_NO, max_tokens=200, temperature=0.0)  # pyright: ignore[reportAttributeAccessIssue]
    ctx.send_event(OutputEvent(YES_OR_NO.parse(answer.content)))  # pyright: ignore[reportAttributeAccessIssue]


def test_in_an_agent() -> None:
    model = ChatModel.local(small_model(), context_tokens=512, temperature=0)
    agent = Agent("clerk").add_resource("clerk", ResourceType.CHAT_MODEL, model)
    agent.add_action("classify", [InputEvent], classify)
    [said] = run_agent(agent, ["Is water wet?"]).outputs
    assert said in ("yes", "no")
