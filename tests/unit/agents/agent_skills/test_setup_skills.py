"""What a chat model with skills is told, and which tools it has (A23)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    OutputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Skills,
)
from emberflow.errors import InvalidAgent, ResourceFailed
from emberflow.testing import ScriptedChatModel, run_agent
from tests.support.skill_folders import write_skill

KEY = "skills"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "greeter", "Greets & thanks.", "Say hello with scripts/ask.sh.")
    write_skill(tmp_path / "skills", "secret-one", "Not for this model.")
    return tmp_path / "skills"


def agent(act: Any, folder: Path | None, **setup: Any) -> Agent:
    model = ResourceDescriptor(clazz=BaseChatModelSetup, connection="scripted", **setup)
    scripted = ResourceDescriptor(clazz=ScriptedChatModel, replies=["done"] * 9, name=KEY)
    made = (
        Agent("skilled")
        .add_action("act", [InputEvent], act)
        .add_resource("model", ResourceType.CHAT_MODEL, model)
        .add_resource("scripted", ResourceType.CHAT_MODEL_CONNECTION, scripted)
    )
    return (
        made
        if folder is None
        else made.add_resource("all", ResourceType.SKILLS, Skills.from_local_dir(folder))
    )


async def ask(event: InputEvent, ctx: RunnerContext) -> None:
    model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
    reply = await model.chat([ChatMessage(content=event.input)])
    ctx.send_event(OutputEvent(reply.content))


def sent(folder: Path | None, **setup: Any) -> Any:
    calls = ScriptedChatModel.calls_of(KEY)
    calls.clear()
    assert run_agent(agent(ask, folder, **setup), ["hi"]).outputs == ["done"]
    (call,) = calls
    return call


def test_the_model_is_told_of_its_skills(folder: Path) -> None:
    call = sent(folder, skills=["greeter"])
    listed, asked = call.messages
    assert (listed.role.value, asked.content) == ("system", "hi")
    assert "<name>greeter</name>\n<description>Greets &amp; thanks.</description>" in listed.content
    assert "secret-one" not in listed.content
    assert "Say hello" not in listed.content, "instructions are loaded when they are needed"
    assert call.tools == ["load_skill"], "without anything allowed there is no shell tool"


def test_the_list_follows_the_system_prompt(folder: Path) -> None:
    prompt = Prompt.from_messages(
        [ChatMessage(role="system", content="Be kind."), ChatMessage(content="Now:")]
    )
    call = sent(folder, skills=["greeter"], prompt=prompt, skill_discovery_prompt="Yours: {skills}!")
    assert [item.content[:7] for item in call.messages] == ["Be kind", "Yours: ", "Now:", "hi"]


def test_the_shell_tool_is_offered_if_something_is_allowed(folder: Path) -> None:
    assert sent(folder, skills=["greeter"], allowed_commands=["echo"]).tools == ["load_skill", "bash"]
    assert sent(None, allowed_commands=["echo"]).tools == ["bash"]
    assert sent(None).tools == []


async def use(event: InputEvent, ctx: RunnerContext) -> None:
    model: Any = ctx.get_resource("model", ResourceType.CHAT_MODEL)
    tools = {item.name: item for item in model.offered_tools()}
    load, bash = tools["load_skill"], tools["bash"]
    folder = event.input
    ctx.send_event(
        OutputEvent(
            [
                await load.call(name="greeter"),
                await load.call({"name": "greeter", "path": "reference.md"}),
                await load.call(name="greeter", path="../secret-one/SKILL.md"),
                await load.call(name="secret-one"),
                await bash.call(command=f"{folder}/greeter/scripts/ask.sh Hello | cat", timeout=600),
                await bash.call(command="scripts/ask.sh Hi", cwd=f"{folder}/greeter", timeout=600),
                await bash.call(command=f"{folder}/secret-one/scripts/ask.sh Hello", timeout=600),
            ]
        )
    )


def test_skills_are_loaded_and_their_scripts_run(folder: Path) -> None:
    made = agent(use, folder, skills=["greeter"], allowed_commands=["cat"])
    ((instructions, reference, outside, hidden, ran, ran_inside, refused),) = run_agent(
        made, [str(folder)]
    ).outputs
    assert instructions.startswith('<skill_content name="greeter">\nSay hello with scripts/ask.sh.')
    assert f"<file>{folder}/greeter/scripts/ask.sh</file>" in instructions
    assert reference == "# Reference"
    assert "has no file '../secret-one/SKILL.md'" in outside
    assert hidden == "There is no skill 'secret-one'. Your skills: greeter"
    assert (ran, ran_inside) == ("Hello, and why not?", "Hi, and why not?")
    assert refused.startswith("Command rejected: the program ")


def test_skills_that_are_not_there(folder: Path) -> None:
    with pytest.raises(ResourceFailed, match="there is no skill 'greter'; did you mean 'greeter'"):
        sent(folder, skills=["greter"])
    with pytest.raises(InvalidAgent, match="the chat model 'model' lists skills, but the agent has none"):
        sent(None, skills=["greeter"])


@pytest.mark.parametrize("name", ["skills", "allowed_commands", "allowed_script_dirs", "tools"])
def test_lists_are_lists(name: str) -> None:
    given: Any = {name: "bc"}
    with pytest.raises(InvalidAgent, match=f"{name} must be a list"):
        BaseChatModelSetup(connection="x", **given)


def test_skills_need_an_agent() -> None:
    model = BaseChatModelSetup(connection=ScriptedChatModel(["x"]), skills=["a"])
    with pytest.raises(ResourceFailed, match="not part of an agent"):
        asyncio.run(model.chat("hi"))
