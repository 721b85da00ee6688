"""Chat models: a connection talks to a service, a setup adds what one use of it needs (prompt, tools, settings).

Several setups may share one connection. Vendors subclass both (`integrations/chat_models/`); tests use
`emberflow.testing.ScriptedChatModel` as the connection.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from emberflow.agents.models import chat_connection
from emberflow.agents.models.chat_connection import BaseChatModelConnection, ChatChunk, OnChunk
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.output_schema import OutputSchema, StructuredOutputStrategy
from emberflow.agents.models.prompt_text import Prompt
from emberflow.agents.tools.calling import ready_tools
from emberflow.agents.tools.function_tool import Tool, as_tool
from emberflow.errors import EmberflowError, InvalidAgent, ResourceFailed, did_you_mean, shorten
from emberflow.operators.admission.throttling import without_throttle_retries
from emberflow.plan.agents.options import HistoryStrategy
from emberflow.plan.agents.resources import Resource, ResourceType

if TYPE_CHECKING:
    from emberflow.agents.agent_skills.setup_skills import SetupSkills

_log = logging.getLogger("emberflow.agents")


class BaseChatModelSetup(Resource):
    """A connection together with a prompt, tools and settings.

    Usable directly or by subclassing. In an agent, `connection`, `prompt` and `tools` are names of resources, each looked
    up when it is first needed; outside of an agent they may be the objects themselves:

    ```python
    import asyncio

    from emberflow.agents import BaseChatModelSetup, Prompt
    from emberflow.testing import ScriptedChatModel


    async def ask() -> str:
        connection = ScriptedChatModel(["It is 3."])
        setup = BaseChatModelSetup(connection=connection, prompt=Prompt.from_text("Be brief."))
        return (await setup.chat("What is 1 + 2?")).content


    assert asyncio.run(ask()) == "It is 3."
    ```

    When a call fails, the setup `fallback` is called instead, with its own prompt, tools, model and settings; also when
    the service answers "too many requests", for which a call would otherwise wait.

    Like its connection, it may be called concurrently on one event loop.
    """

    def __init__(
        self,
        *,
        connection: str | BaseChatModelConnection,
        model: str = "",
        prompt: Prompt | str | None = None,
        tools: Sequence[str | Tool | Callable[..., Any]] = (),
        fallback: str | BaseChatModelSetup | None = None,
        structured_output_strategy: StructuredOutputStrategy | str | None = StructuredOutputStrategy.AUTO,
        skills: Sequence[str] | None = None,
        skill_discovery_prompt: str | None = None,
        allowed_commands: Sequence[str] = (),
        allowed_script_dirs: Sequence[str] = (),
        max_history_tokens: int | None = None,
        history_strategy: HistoryStrategy | str | None = None,
        **settings: Any,
    ) -> None:
        """`skills` are the names of the agent's skills that the model may load. With `allowed_commands` or
        `allowed_script_dirs` it gets the tool `bash`, which runs these commands and the programs in these directories.
        `max_history_tokens` and `history_strategy` limit what a chat sends, by default as the options `chat.history.…`
        say. `settings` are passed to the service with every call; None leaves a setting out."""
        lists = {
            "tools": tools,
            "skills": skills,
            "allowed_commands": allowed_commands,
            "allowed_script_dirs": allowed_script_dirs,
        }
        for name, given in lists.items():
            if isinstance(given, str):
                raise InvalidAgent(
                    f"{name} must be a list of names, got the string {given!r}", way_out=f"{name}=[{given!r}]"
                )
        self.connection = connection
        self.model = model
        self.prompt = prompt
        self.tools = list(tools)
        self.fallback = fallback
        self.structured_output_strategy = _strategy(structured_output_strategy)
        self.skills = None if skills is None else list(skills)
        self.skill_discovery_prompt = skill_discovery_prompt
        self.allowed_commands = list(allowed_commands)
        self.allowed_script_dirs = list(allowed_script_dirs)
        self.max_history_tokens = max_history_tokens
        self.history_strategy = history_strategy
        self.settings = {name: value for name, value in settings.items() if value is not None}

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.CHAT_MODEL`."""
        return ResourceType.CHAT_MODEL

    @classmethod
    def needed_resources(cls) -> dict[str, ResourceType]:
        """The connection, the prompt and the fallback; none if the class has a `chat` of its own, which may do without."""
        if cls.chat is not BaseChatModelSetup.chat:
            return {}
        return {
            "connection": ResourceType.CHAT_MODEL_CONNECTION,
            "prompt": ResourceType.PROMPT,
            "fallback": ResourceType.CHAT_MODEL,
        }

    @property
    def model_kwargs(self) -> dict[str, Any]:
        """The settings of every call; a vendor's setup may add more."""
        return {"model": self.model, **self.settings} if self.model else dict(self.settings)

    def offered_tools(self) -> list[Tool]:
        """The tools offered to the model, including those of the fallback."""
        fallback, tools = self._found_fallback, self._found_tools
        return tools if fallback is None else [*fallback.offered_tools(), *tools]

    @property
    def call_settings(self) -> dict[str, Any]:
        """What determines an answer besides the messages: a durable call is answered from its record only if this has not
        changed."""
        settings = dict(self.model_kwargs)
        if self._found_prompt is not None:
            settings["prompt"] = self._found_prompt.template
        if self._found_tools:
            settings["tools"] = [tool.name for tool in self._found_tools]
        if self.skills:
            settings["skills"] = self.skills
        if self._found_fallback is not None:
            settings["fallback"] = self._found_fallback.call_settings
        if self.structured_output_strategy is not StructuredOutputStrategy.AUTO:
            settings["structured_output_strategy"] = self.structured_output_strategy.value
        return settings

    @property
    def wants_idempotency_key(self) -> bool:
        """Whether the connection, or that of the fallback, accepts a durable call's idempotency key, to pass it on."""
        fallback = self._found_fallback
        return self._takes_key or (fallback is not None and fallback.wants_idempotency_key)

    async def chat(
        self,
        messages: str | Sequence[ChatMessage],
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output_schema: Any = None,
        on_chunk: OnChunk | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer to the prompt, filled with `prompt_args`, followed by the messages (a string is a message of the
        user). One call of the model: tool calls are in the answer, for the caller.

        With an `output_schema`, the schema is passed to the model; `OutputSchema(…).parse(answer.content)` reads it.
        `on_chunk` is called with the pieces of the answer as they arrive. `kwargs` take precedence over the setup's own
        settings."""
        connection, fallback = self._found_connection, self._found_fallback
        asked = [ChatMessage(content=messages)] if isinstance(messages, str) else list(messages)
        sent = asked
        if self._found_prompt is not None:
            named = self.prompt if isinstance(self.prompt, str) else ""
            filled = await self._found_prompt.messages_for(prompt_args or {}, named=named)
            # A prompt may be complete by itself: services reject an empty message after it.
            sent = [*filled, *filter(_says_something, asked)]
        if self._found_skills is not None:
            sent = await self._found_skills.added_to(sent)
        settings = {**self.model_kwargs, **kwargs}
        schema = None if output_schema is None else OutputSchema(output_schema)
        if schema is not None:
            if self._is_native(connection, self.effective_model(settings)):
                settings["output_schema"] = schema
            else:
                sent = chat_connection.with_instructions(sent, schema)
        if fallback is None:
            return await self._asked(connection, sent, on_chunk, settings)
        if not self._takes_key:
            settings.pop("idempotency_key", None)
        try:
            with without_throttle_retries():
                return await self._asked(connection, sent, on_chunk, settings)
        except Exception as error:
            # Without its message, which may contain a secret.
            _log.warning("a chat model failed with %s; its fallback is called", type(error).__name__)
        # Outside of the except block: errors of the fallback must not look as if the first error caused them.
        handed = self._for_fallback(fallback, kwargs)
        return await chat_connection.call_setup(fallback, asked, prompt_args, schema, on_chunk, handed)

    def stream(
        self,
        messages: str | Sequence[ChatMessage],
        prompt_args: Mapping[str, Any] | None = None,
        *,
        output_schema: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatChunk]:
        """Like `chat`, but piece by piece: `async for chunk in setup.stream("…")`; the last piece has the whole message.

        Not a durable call: when its action is repeated, the model is asked again."""
        asked = functools.partial(self.chat, messages, prompt_args, output_schema=output_schema, **kwargs)
        return chat_connection.streamed(asked)

    def effective_model(self, settings: dict[str, Any]) -> str | None:
        """The model that a call with these settings reaches, as `supports_native_structured_output` knows it."""
        return settings.get("model")

    async def _asked(
        self,
        connection: BaseChatModelConnection,
        sent: Sequence[ChatMessage],
        on_chunk: OnChunk | None,
        settings: dict[str, Any],
    ) -> ChatMessage:
        tools = await ready_tools(self._found_tools)
        return await chat_connection.call(connection, sent, tools or None, on_chunk=on_chunk, **settings)

    def _is_native(self, connection: BaseChatModelConnection, model: str | None) -> bool:
        strategy = self.structured_output_strategy
        if strategy is StructuredOutputStrategy.PROMPT:
            return False
        accepts = chat_connection.takes(connection, "output_schema")
        if strategy is StructuredOutputStrategy.AUTO:
            return accepts and connection.supports_native_structured_output(model)
        if not accepts:
            raise InvalidAgent(
                f"structured_output_strategy is 'native', but the chat of {type(connection).__name__} has no parameter "
                "'output_schema'",
                way_out="use 'auto' or 'prompt'",
            )
        return True

    def _for_fallback(self, fallback: BaseChatModelSetup, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The call's settings for the fallback, which chooses the model itself."""
        handed = {name: value for name, value in kwargs.items() if name not in ("idempotency_key", "model")}
        key = kwargs.get("idempotency_key")
        if key is not None and fallback.wants_idempotency_key:
            # A different key: a service may answer a key that it knows with its earlier response.
            handed["idempotency_key"] = f"{key}-fallback"
        return handed

    @property
    def _takes_key(self) -> bool:
        try:
            connection = self._found_connection
        except EmberflowError:
            if type(self).chat is BaseChatModelSetup.chat:
                raise
            # A `chat` of its own may do without the connection.
            return False
        return chat_connection.takes(connection, "idempotency_key")

    # What the names refer to. Each is looked up by itself: a subclass may never need the others.

    @cached_property
    def _found_connection(self) -> BaseChatModelConnection:
        given = self.connection
        if not isinstance(given, str):
            return given
        return self._get(given, ResourceType.CHAT_MODEL_CONNECTION, BaseChatModelConnection)

    @cached_property
    def _found_prompt(self) -> Prompt | None:
        given = self.prompt
        return self._get(given, ResourceType.PROMPT, Prompt) if isinstance(given, str) else given

    @cached_property
    def _found_tools(self) -> list[Tool]:
        tools = [
            as_tool(tool, self._get(tool, ResourceType.TOOL, object))
            if isinstance(tool, str)
            else as_tool("", tool)
            for tool in self.tools
        ]
        return [*tools, *(self._found_skills.tools if self._found_skills else ())]

    @cached_property
    def _found_fallback(self) -> BaseChatModelSetup | None:
        given = self.fallback
        if not isinstance(given, str):
            return given
        found: BaseChatModelSetup = self._get(given, ResourceType.CHAT_MODEL, BaseChatModelSetup)
        self._check_circle(found)
        return found

    @cached_property
    def _found_skills(self) -> SetupSkills | None:
        if not (self.skills or self.allowed_commands or self.allowed_script_dirs):
            return None
        from emberflow.agents.agent_skills.setup_skills import SetupSkills

        return SetupSkills(
            self.skills or (),
            getattr(self, "resource_context", None),
            discovery_prompt=self.skill_discovery_prompt,
            allowed_commands=self.allowed_commands,
            allowed_script_dirs=self.allowed_script_dirs,
        )

    def _check_circle(self, fallback: BaseChatModelSetup) -> None:
        """Fallbacks are looked up when they are used: each one looks for itself among those that follow it."""
        path = [self.fallback]
        following: Any = fallback
        while isinstance(following, BaseChatModelSetup) and following.fallback is not None:
            path.append(following.fallback)
            following = following.fallback
            if isinstance(following, str):
                following = self._get(following, ResourceType.CHAT_MODEL, BaseChatModelSetup)
            if path[-1] in path[:-1]:
                shown = " -> ".join(f"chat_model {name!r}" for name in path)
                raise ResourceFailed(f"chat models are each other's fallback in a cycle: {shown}")

    def _get(self, name: str, kind: ResourceType, wanted: type[Any]) -> Any:
        context = getattr(self, "resource_context", None)
        if context is None:
            raise ResourceFailed(
                f"the chat model looks for the {kind.value} {name!r}, but it is not part of an agent",
                way_out=f"give it the {kind.value} itself instead of a name",
            )
        found = context.get_resource(name, kind)
        if not isinstance(found, wanted):
            raise ResourceFailed(
                f"the {kind.value} {name!r} is a {type(found).__name__}, the chat model needs a {wanted.__name__}"
            )
        return found

    def __getstate__(self) -> dict[str, Any]:
        # The resources that were looked up belong to this process.
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "resource_context" and not name.startswith("_found")
        }


def _strategy(given: StructuredOutputStrategy | str | None) -> StructuredOutputStrategy:
    try:
        return StructuredOutputStrategy(given)
    except ValueError:
        known = [item.value for item in StructuredOutputStrategy]
        raise InvalidAgent(
            f"structured_output_strategy is {shorten(given)}{did_you_mean(given, known)}",
            way_out=f"one of {', '.join(known)}",
        ) from None


def _says_something(message: ChatMessage) -> bool:
    # An assistant's message may contain tool calls only, and a tool's result is expected even if it is empty.
    return bool(message.content) or message.role in (MessageRole.ASSISTANT, MessageRole.TOOL)
