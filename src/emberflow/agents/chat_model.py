"""Chat models: a connection talks to a service, a setup adds what one use of it needs (prompt, tools, settings).

Several setups may share one connection. Vendors subclass both (`integrations/chat_models/`); tests use
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
from emberflow.operators.admission.throttling import without_throttle_retries
from emberflow.operators.agents.calls.durable_calls import takes_idempotency_key
from emberflow.operators.agents.resources.resource_views import unwrapped
from emberflow.plan.agents.resources import Resource, ResourceType

_log = logging.getLogger("emberflow.agents")


class BaseChatModelConnection(Resource, ABC):
    """How to reach a model service: address, key, timeouts.

    A descriptor may limit its load: `max_concurrent`, `requests_per_minute`, `tokens_per_minute`, for all processes of a
    job together. An error with the status 429 or 503 makes all of them pause (`docs/admission.md`).

    One connection serves all keys of a process: `chat` is called concurrently on one event loop. An implementation must
    not block the loop, and must not share state between calls.
    """

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.CHAT_MODEL_CONNECTION`."""
        return ResourceType.CHAT_MODEL_CONNECTION

    @abstractmethod
    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> ChatMessage:
        """The model's answer; `kwargs` are settings of the service (model, temperature, …). Raises the errors of the
        service's client: the caller decides whether a call is retried."""


class _Found(NamedTuple):
    """The resources that a setup's names refer to."""

    connection: BaseChatModelConnection
    prompt: Prompt | None
    tools: list[Tool]
    fallback: BaseChatModelSetup | None


class BaseChatModelSetup(Resource):
    """A connection together with a prompt, tools and settings.

    Usable directly or by subclassing. In an agent, `connection`, `prompt` and `tools` are names of resources, looked up
    when the setup is opened; outside of an agent they may be the objects themselves, and nothing needs to be opened:

        setup = BaseChatModelSetup(connection=connection, prompt=Prompt.from_text("Be brief."), tools=[add])
        answer = await setup.chat([ChatMessage(content="What is 1 + 2?")])

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
        """The settings of every call; a vendor's setup may add more."""
        return {"model": self.model, **self.settings} if self.model else dict(self.settings)

    @property
    def call_settings(self) -> dict[str, Any]:
        """What determines an answer besides the messages: a durable call is answered from its record only if this has not
        changed."""
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
        """Whether the connection, or that of the fallback, accepts a durable call's idempotency key, to pass it on."""
        fallback = self._resolved().fallback
        return self._takes_key or (fallback is not None and fallback.wants_idempotency_key)

    def open(self) -> None:
        """Looks up the resources by their names, so that a wrong name is reported before the first call."""
        self._found = self._find()

    async def chat(
        self,
        messages: str | Sequence[ChatMessage],
        prompt_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        """The answer to the prompt, filled with `prompt_args`, followed by the messages (a string is a message of the
        user). `kwargs` take precedence over the setup's own settings."""
        found = self._resolved()
        asked = [ChatMessage(content=messages)] if isinstance(messages, str) else list(messages)
        sent = asked
        if found.prompt is not None:
            # A prompt may be complete by itself: services reject an empty message after it.
            sent = [*found.prompt.fill_messages(prompt_args or {}), *filter(_says_something, asked)]
        settings = {**self.model_kwargs, **kwargs}
        if found.fallback is None:
            return await found.connection.chat(sent, tools=found.tools or None, **settings)
        if not self._takes_key:
            settings.pop("idempotency_key", None)
        try:
            with without_throttle_retries():
                return await found.connection.chat(sent, tools=found.tools or None, **settings)
        except Exception as error:
            # Without its message, which may contain a secret.
            _log.warning("a chat model failed with %s, its fallback is asked", type(error).__name__)
        # Outside of the except block: errors of the fallback must not look as if the first error caused them.
        return await found.fallback.chat(asked, prompt_args, **self._for_fallback(found.fallback, kwargs))

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
        # The resources that were looked up belong to this process.
        kept = {name: value for name, value in self.__dict__.items() if name != "resource_context"}
        return {**kept, "_found": None}


def _says_something(message: ChatMessage) -> bool:
    # An assistant's message may contain tool calls only, and a tool's result is expected even if it is empty.
    return bool(message.content) or message.role in (MessageRole.ASSISTANT, MessageRole.TOOL)
