"""Chat models: a connection talks to a service, a setup adds what one use of it needs (prompt, tools, settings).

Several setups may share one connection. Vendors subclass both (`integrations/chat_models/`); tests take
`emberflow.testing.ScriptedChatModel` as the connection.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from emberflow.agents.chat_message import ChatMessage, MessageRole
from emberflow.agents.prompt import Prompt
from emberflow.agents.tool import Tool, as_tool
from emberflow.errors import InvalidAgent, ResourceFailed
from emberflow.operators.admission.throttling import the_first_refusal_counts
from emberflow.operators.agents.calls.durable_calls import takes_idempotency_key
from emberflow.operators.agents.resources.resource_views import unwrapped
from emberflow.plan.agents.resources import Resource, ResourceType

_log = logging.getLogger("emberflow.agents")


class BaseChatModelConnection(Resource, ABC):
    """How a model service is reached: address, key, timeouts.

    A descriptor may say how much it can take: `max_concurrent`, `requests_per_minute`, `tokens_per_minute`, for all
    processes of a job together. An error with the status 429 or 503 makes all of them pause (`docs/admission.md`).

    One connection serves all keys of a process: `chat` is called again while earlier calls still wait, on one event
    loop. An implementation must not block the loop and keeps nothing of one call where another call would see it.
    """

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.CHAT_MODEL_CONNECTION`."""
        return ResourceType.CHAT_MODEL_CONNECTION

    @abstractmethod
    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> ChatMessage:
        """The model's answer; `kwargs` are settings of the service (model, temperature, …). Raises what the service's
        client raises: whether a call is repeated is decided by the caller."""


class _Found(NamedTuple):
    """The resources behind a setup's names."""

    connection: BaseChatModelConnection
    prompt: Prompt | None
    tools: list[Tool]
    fallback: BaseChatModelSetup | None


class BaseChatModelSetup(Resource):
    """A connection together with a prompt, tools and settings.

    Usable as it is and by subclasses. In an agent, `connection`, `prompt` and `tools` are names of resources, found
    when the setup is opened; outside of one they may be the objects themselves, and nothing needs to be opened:

        setup = BaseChatModelSetup(connection=connection, prompt=Prompt.from_text("Be brief."), tools=[add])
        answer = await setup.chat([ChatMessage(content="What is 1 + 2?")])

    When a call fails, the setup `fallback` is asked the same instead, with its own prompt, tools, model and settings; also
    when the service says "too many requests", for which a call would otherwise wait.

    Like its connection, it may be asked many times at once on one event loop.
    """

    def __init__(
        self,
        *,
        connection: str | BaseChatModelConnection,
        model: str = "",
        prompt: Prompt | str | None = None,
        tools: Sequence[str | Tool | Callable[..., Any]] = (),
        fallback: str | BaseChatModelSetup | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(tools, str):
            raise InvalidAgent(
                f"tools is a list of names, got the text {tools!r}", way_out=f"tools=[{tools!r}]"
            )
        self.connection = connection
        self.model = model
        self.prompt = prompt
        self.tools = list(tools)
        self.fallback = fallback
        self.settings = settings
        self._found: _Found | None = None

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.CHAT_MODEL`."""
        return ResourceType.CHAT_MODEL

    @property
    def model_kwargs(self) -> dict[str, Any]:
        """The settings of every call; a vendor's setup may give more."""
        return {"model": self.model, **self.settings} if self.model else dict(self.settings)

    @property
    def call_settings(self) -> dict[str, Any]:
        """What decides about an answer besides the messages: a durable call is only answered from its record while
        this is the same."""
        found = self._resolved()
        settings = dict(self.model_kwargs)
        if found.prompt is not None:
            settings["prompt"] = found.prompt.template
        if found.tools:
            settings["tools"] = [tool.name for tool in found.tools]
        if found.fallback is not None:
            settings["fallback"] = found.fallback.call_settings
        return settings

    @property
    def wants_idempotency_key(self) -> bool:
        """Whether the connection, or that of the fallback, takes the key of a durable call, to hand it to its service."""
        fallback = self._resolved().fallback
        return self._takes_key or (fallback is not None and fallback.wants_idempotency_key)

    def open(self) -> None:
        """Finds the resources by their names, so that a wrong name shows before the first call."""
        self._found = self._find()

    async def chat(
        self,
        messages: str | Sequence[ChatMessage],
        prompt_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer to the prompt, filled with `prompt_args`, followed by the messages (a text is one of the
        user). `kwargs` go before the setup's own settings."""
        found = self._resolved()
        asked = [ChatMessage(content=messages)] if isinstance(messages, str) else list(messages)
        sent = asked
        if found.prompt is not None:
            # A prompt may say all there is to say: services refuse the empty question that then follows it.
            sent = [*found.prompt.fill_messages(prompt_args or {}), *filter(_says_something, asked)]
        settings = {**self.model_kwargs, **kwargs}
        if found.fallback is None:
            return await found.connection.chat(sent, tools=found.tools or None, **settings)
        if not self._takes_key:
            settings.pop("idempotency_key", None)
        try:
            with the_first_refusal_counts():
                return await found.connection.chat(sent, tools=found.tools or None, **settings)
        except Exception as error:
            # Its text may hold a secret.
            _log.warning("a chat model failed with %s, its fallback is asked", type(error).__name__)
        # Out here: errors of the fallback must not look as if they were caused by the first one's.
        return await found.fallback.chat(asked, prompt_args, **self._for_fallback(found.fallback, kwargs))

    def _for_fallback(self, fallback: BaseChatModelSetup, kwargs: dict[str, Any]) -> dict[str, Any]:
        """What a call wants of the other model; which one it is is for the fallback to say."""
        handed = {name: value for name, value in kwargs.items() if name not in ("idempotency_key", "model")}
        key = kwargs.get("idempotency_key")
        if key is not None and fallback.wants_idempotency_key:
            # Another key: a service may answer a key that it knows as it did before.
            handed["idempotency_key"] = f"{key}-fallback"
        return handed

    @property
    def _takes_key(self) -> bool:
        connection: BaseChatModelConnection = unwrapped(self._resolved().connection)
        return takes_idempotency_key(type(connection).chat)

    def _resolved(self) -> _Found:
        if self._found is None:
            self._found = self._find()
        return self._found

    def _find(self) -> _Found:
        connection, prompt, fallback = self.connection, self.prompt, self.fallback
        if isinstance(connection, str):
            connection = self._get(connection, ResourceType.CHAT_MODEL_CONNECTION, BaseChatModelConnection)
        if isinstance(prompt, str):
            prompt = self._get(prompt, ResourceType.PROMPT, Prompt)
        tools = [
            as_tool(tool, self._get(tool, ResourceType.TOOL, object))
            if isinstance(tool, str)
            else as_tool("", tool)
            for tool in self.tools
        ]
        if isinstance(fallback, str):
            fallback = self._get(fallback, ResourceType.CHAT_MODEL, BaseChatModelSetup)
        return _Found(connection, prompt, tools, fallback)

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
        # What was found belongs to this process.
        kept = {name: value for name, value in self.__dict__.items() if name != "resource_context"}
        return {**kept, "_found": None}


def _says_something(message: ChatMessage) -> bool:
    # An assistant's message may hold tool calls only, and a tool's result is expected even when it is empty.
    return bool(message.content) or message.role in (MessageRole.ASSISTANT, MessageRole.TOOL)
