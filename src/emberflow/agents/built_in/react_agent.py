"""`ReActAgent`: a model that reasons and calls tools until it has an answer, as an agent without code of its own."""

from __future__ import annotations

from typing import Any

from emberflow.agents.action_context import RunnerContext
from emberflow.agents.agent import Agent
from emberflow.agents.built_in.chat_events import ChatRequestEvent, ChatResponseEvent
from emberflow.agents.built_in.input_fields import fields_of_input, text_of_input
from emberflow.agents.decorators import action
from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.output_schema import STRUCTURED_OUTPUT, OutputSchema
from emberflow.agents.models.prompt_text import Prompt
from emberflow.errors import InvalidAgent, shorten
from emberflow.events.agent_events import InputEvent, OutputEvent
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

_MODEL = "_default_chat_model"
_PROMPT = "_default_user_prompt"


class ReActAgent(Agent):
    """Asks a chat model about every input, calls the tools that the model wants, and emits its final answer.

    ```python
    from emberflow.agents import BaseChatModelSetup, ReActAgent, ResourceDescriptor, ResourceType
    from emberflow.testing import Reply, ScriptedChatModel, run_agent, tool_call


    def add(a: int, b: int) -> int:
        "The sum."
        return a + b


    replies = [Reply(tool_calls=[tool_call("add", a=1, b=2)]), "It is 3."]
    agent = ReActAgent(
        chat_model=ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=["add"])
    )
    service = ResourceDescriptor(clazz=ScriptedChatModel, replies=replies)
    agent.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
    agent.add_resource("add", ResourceType.TOOL, add)

    assert run_agent(agent, ["What is 1 + 2?"]).outputs == ["It is 3."]
    ```
    """

    def __init__(
        self,
        *,
        chat_model: ResourceDescriptor | str,
        prompt: Prompt | str | None = None,
        output_schema: Any = None,
        max_steps: int | None = None,
        name: str | None = None,
    ) -> None:
        """`chat_model` describes a chat model, or names one of the environment. `prompt` is sent with every input, its
        placeholders are filled with the fields of the input, `{input}` if it is a single value; an input that lacks one
        fails. A string names a prompt.
        `output_schema` is the type of the outputs, by default text. `max_steps` limits the calls of the model per input.

        Raises InvalidAgent.
        """
        super().__init__(name)
        if isinstance(chat_model, str):
            model = chat_model
        elif isinstance(chat_model, ResourceDescriptor):
            model = _MODEL
            self.add_resource(_MODEL, ResourceType.CHAT_MODEL, chat_model)
        else:
            raise InvalidAgent(
                f"chat_model must be a ResourceDescriptor or a name, got {shorten(chat_model)}",
                way_out="ReActAgent(chat_model=ResourceDescriptor(clazz=…, connection=…), …)",
            )
        if max_steps is not None and max_steps < 1:
            raise InvalidAgent(f"max_steps of a ReActAgent must be at least 1, got {max_steps!r}")
        prompt_name = prompt if isinstance(prompt, str) else None
        if prompt is not None and not isinstance(prompt, str):
            prompt_name = _PROMPT
            self.add_resource(_PROMPT, ResourceType.PROMPT, prompt)
        self.add_action(
            "start_action",
            [InputEvent],
            ReActAgent.start_action,
            model=model,
            prompt=prompt_name,
            output_schema=None if output_schema is None else OutputSchema(output_schema).model_dump(),
            max_steps=max_steps,
        )

    @staticmethod
    def start_action(event: InputEvent, ctx: RunnerContext) -> None:
        """Asks the model about an input."""
        settings = ctx.action_config
        value = event.input
        if settings["prompt"] is None:
            messages = [ChatMessage(content=text_of_input(value))]
        else:
            name = settings["prompt"]
            prompt: Prompt = ctx.get_resource(name, ResourceType.PROMPT)
            named = "" if name == _PROMPT else name
            messages = prompt.messages_to_send(fields_of_input(value), MessageRole.USER, named=named)
        schema = settings["output_schema"]
        ctx.send_event(
            ChatRequestEvent(
                settings["model"],
                messages,
                output_schema=None if schema is None else OutputSchema.model_validate(schema),
                max_steps=settings["max_steps"],
            )
        )

    @action(ChatResponseEvent)
    @staticmethod
    def stop_action(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        """Emits the final answer."""
        response = event.response
        ctx.send_event(OutputEvent(response.extra_args.get(STRUCTURED_OUTPUT, response.content)))
