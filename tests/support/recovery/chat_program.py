"""An agent whose model and tools cost money: each call leaves a line in a file, and the process is killed before each of
them is made for the first time. As a program: `chat_program.py FOLDER FORM`, on `local`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    MessageRole,
    OutputEvent,
    ReActAgent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
)
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import literal_files, tool_call

STEPS = 3
"""Replies that ask for a tool, before the final answer."""
OUTPUT = [("ann", "the total is 6")]
CALLS = ["model 0", "pay 1", "model 1", "pay 2", "model 2", "pay 3", "model 3"]


def paid(folder: Path) -> list[str]:
    """The calls that were made, in order."""
    return (folder / "paid").read_text().splitlines()


def charge(folder: str, what: str) -> None:
    """The outside world. The process dies the first time, before anything is paid."""
    marker = Path(folder) / f"died-before-{what.replace(' ', '-')}"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with (Path(folder) / "paid").open("a") as file:
        file.write(f"{what}\n")


class PaidModel(BaseChatModelConnection):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        results = [message.content for message in messages if message.role is MessageRole.TOOL]
        charge(self._folder, f"model {len(results)}")
        if len(results) == STEPS:
            total = sum(map(int, results))
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"the total is {total}")
        wanted = {"id": f"call-{len(results)}", **tool_call("pay", amount=len(results) + 1)}
        return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[wanted])


class Pay:
    """A tool that remembers where it pays."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def __call__(self, amount: int) -> int:
        """Pays an amount."""
        charge(self._folder, f"pay {amount}")
        return amount


async def ask(event: InputEvent, ctx: RunnerContext) -> None:
    answer = await ctx.chat("model", event.input[1])
    ctx.send_event(OutputEvent((ctx.key, answer.content)))


def ask_plainly(event: InputEvent, ctx: RunnerContext) -> None:
    answer: Any = ctx.chat("model", event.input[1])
    ctx.send_event(OutputEvent((ctx.key, answer.content)))


def ask_by_hand(event: InputEvent, ctx: RunnerContext) -> None:
    """A plain action that calls the model and the tool itself."""
    model, pay = (
        ctx.get_resource("model", ResourceType.CHAT_MODEL),
        ctx.get_resource("pay", ResourceType.TOOL),
    )
    messages = [ChatMessage(content=event.input[1])]
    while (reply := model.chat(messages)).tool_calls:
        messages.append(reply)
        for call in reply.tool_calls:
            paid = pay.call(call["function"]["arguments"])
            messages.append(ChatMessage(role=MessageRole.TOOL, content=str(paid)))
    ctx.send_event(OutputEvent((ctx.key, reply.content)))


ACTIONS: dict[str, Any] = {"context": ask, "plain": ask_plainly, "by hand": ask_by_hand}


class Reacting(ReActAgent):
    """With the key in its outputs."""

    @staticmethod
    def stop_action(event: Any, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, event.response.content)))


async def hand_over(event: InputEvent, ctx: RunnerContext) -> None:
    """Lets a sub-agent chat by events."""
    ctx.send_event(OutputEvent((ctx.key, await ctx.call_agent("payer", event.input[1]))))


def agent_of(form: str, folder: str) -> Agent:
    agent: Agent
    if form == "sub-agent":
        agent = Agent("handing").add_action("hand over", [InputEvent], hand_over)
        payer = with_resources(ReActAgent(chat_model="model", name="payer"), folder)
        return agent.add_resource("payer", ResourceType.AGENT, payer)
    if form in ACTIONS:
        agent = Agent("asking").add_action("ask", [InputEvent], ACTIONS[form])
    else:
        agent = Reacting(chat_model="model")
        agent.add_action("stop_action", ["_chat_response_event"], Reacting.stop_action)
    return with_resources(agent, folder)


def with_resources(agent: Agent, folder: str) -> Agent:
    service = ResourceDescriptor(clazz=PaidModel, folder=folder)
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=["pay"])
    agent.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)
    agent.add_resource("model", ResourceType.CHAT_MODEL, model)
    return agent.add_resource("pay", ResourceType.TOOL, Pay(folder))


def run(env: StreamExecutionEnvironment, folder: Path, form: str) -> None:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    inputs = env.from_collection([("ann", "what is the total?")])
    outputs = agents_env.from_datastream(inputs, lambda value: value[0]).apply(agent_of(form, str(folder)))
    outputs.to_datastream().sink_to(literal_files(folder / "output")).uid("files")
    env.execute("paid chat")


if __name__ == "__main__":
    to = Path(sys.argv[1])
    local = StreamExecutionEnvironment.get_execution_environment(
        engine="local", checkpoint_dir=str(to / "checkpoints")
    )
    run(local.enable_checkpointing(20), to, sys.argv[2])
