"""One call of a chat model, with retries: all attempts together are one durable call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from emberflow.agents.built_in.messages import as_messages
from emberflow.agents.models.chat_connection import with_instructions
from emberflow.agents.models.chat_message import ChatMessage, reply_of
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.errors import describe_cause
from emberflow.operators.agents.guards.error_kinds import is_permanent
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.operators.agents.resources.resource_views import unwrapped
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.options import AgentExecutionOptions, ErrorHandlingStrategy
from emberflow.plan.agents.resources import ResourceType

_log = logging.getLogger("emberflow.agents")

RETRY_COUNT = "retry_count"
RETRY_WAIT = "total_retry_wait_sec"
"""In the `extra_args` of a reply that needed retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetries:
    """The strategy for calls that fail."""

    strategy: ErrorHandlingStrategy
    retries: int
    wait_s: float

    @staticmethod
    def of(config: Configuration) -> ModelRetries:
        """As the options say."""
        strategy = config.get(AgentExecutionOptions.ERROR_HANDLING_STRATEGY)
        retries = strategy is ErrorHandlingStrategy.RETRY
        return ModelRetries(
            strategy=strategy,
            retries=config.get(AgentExecutionOptions.MAX_RETRIES) if retries else 0,
            wait_s=config.get(AgentExecutionOptions.RETRY_WAIT_INTERVAL),
        )


async def call_model(
    calls: CallBranch,
    name: str,
    messages: str | Sequence[ChatMessage],
    prompt_args: Mapping[str, Any] | None,
    schema: OutputSchema | None,
    settings: Mapping[str, Any],
) -> ChatMessage:
    """The reply of the chat model with this name. Raises the last error of the model's service."""
    model = calls.resource(name, ResourceType.CHAT_MODEL)
    retries = ModelRetries.of(calls.config)
    given = dict(settings)
    if schema is not None:
        if _takes_schema(model):
            given["output_schema"] = schema
        else:
            messages = with_instructions(as_messages(messages), schema)

    async def make(sent: Any, filled_with: Any, **kwargs: Any) -> Any:
        retried, waited_s = 0, 0.0
        # As Flink Agents calls a `chat` that the user has written: with a list, and the other arguments by their names.
        chat = functools.partial(calls.run, model.chat, as_messages(sent), prompt_args=filled_with)
        while True:
            try:
                reply = reply_of(unwrapped(model), await chat(**kwargs))
                return _counted(reply, retried, waited_s) if retried else reply
            except Exception as error:
                if retried >= retries.retries or is_permanent(error):
                    raise
                wait_s = retries.wait_s * 2**retried
                retried += 1
                _log.warning(
                    "a call of the chat model %r failed, retry %d of %d follows in %g s: %s",
                    name, retried, retries.retries, wait_s, describe_cause(error),
                )  # fmt: skip
            await asyncio.sleep(wait_s)
            waited_s += wait_s

    return await calls.call(model, name, ResourceType.CHAT_MODEL, make, (messages, prompt_args), given)


def _counted(reply: ChatMessage, retried: int, waited_s: float) -> ChatMessage:
    return replace(reply, extra_args={**reply.extra_args, RETRY_COUNT: retried, RETRY_WAIT: waited_s})


def retries_of(messages: Sequence[ChatMessage]) -> tuple[int, float]:
    """How many retries these replies needed, and how long they waited in seconds."""
    return (
        sum(message.extra_args.get(RETRY_COUNT, 0) for message in messages),
        sum(message.extra_args.get(RETRY_WAIT, 0) for message in messages),
    )


def _takes_schema(model: Any) -> bool:
    plain_model: Any = unwrapped(model)
    chat: Any = plain_model.chat
    try:
        return "output_schema" in inspect.signature(chat).parameters
    except (TypeError, ValueError):
        return False
