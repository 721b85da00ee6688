"""Tools are called alike, however they are written: by a dictionary or by names, plain or as coroutines."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    FunctionTool,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Tool,
    ToolMetadata,
    ToolType,
)
from emberflow.agents.tools.function_tool import as_tool
from emberflow.testing import run_agent


class Described(Tool):
    def __init__(self) -> None:
        self.metadata = ToolMetadata(
            name="made", description="", args_schema={"type": "object", "properties": {}}
        )
        self.own = "mine"

    @classmethod
    def tool_type(cls) -> ToolType:
        return ToolType.FUNCTION


class ByName(Described):
    def call(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs, threading.current_thread() is threading.main_thread()


class ByNameAsync(Described):
    async def call(self, city: str, days: int = 1) -> Any:
        return city, days


class ByObject(Described):
    def call(self, arguments: dict[str, Any]) -> Any:
        return sorted(arguments)


class ByObjectAsync(Described):
    async def call(self, arguments: dict[str, Any]) -> Any:
        return sorted(arguments)


def both(made: Tool, **arguments: Any) -> Any:
    async def call() -> Any:
        found = as_tool("", made)
        first = await found.call(arguments)
        assert first == await found.call(**arguments)
        return first

    return asyncio.run(call())


def test_tools_of_users() -> None:
    assert both(ByName(), city="Ulm") == ((), {"city": "Ulm"}, False)
    assert both(ByNameAsync(), city="Ulm") == ("Ulm", 1)
    assert both(ByObject(), city="Ulm", days=2) == ["city", "days"]
    assert both(ByObjectAsync(), city="Ulm", days=2) == ["city", "days"]


def test_they_remain_what_they_are() -> None:
    made = ByName()
    found: Any = as_tool("made", made)
    assert isinstance(found, ByName)
    assert found.own == "mine"
    assert as_tool("other", made).name == "other"
    assert made.name == "made"


def test_function_tools() -> None:
    def where(a: int) -> Any:
        return a, threading.current_thread() is threading.main_thread()

    assert both(FunctionTool(where), a=1) == (1, False)


def test_a_plain_function_does_not_block_the_others() -> None:
    meet = threading.Barrier(3)

    def wait_for_others() -> int:
        return meet.wait()

    async def call() -> list[Any]:
        found = FunctionTool(wait_for_others)
        return await asyncio.gather(*(found.call() for _ in range(3)))

    assert sorted(asyncio.run(call())) == [0, 1, 2]


def test_what_a_function_on_a_thread_raises() -> None:
    def stop() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(FunctionTool(stop).call())


async def ask(event: InputEvent, ctx: RunnerContext) -> None:
    made = ctx.get_resource("made", ResourceType.TOOL)
    args, kwargs, is_main = await ctx.call_tool("made", city=event.input)
    assert isinstance(made, ByName)
    ctx.send_event(OutputEvent([args, kwargs, is_main, await made.call({"days": 2})]))


@pytest.mark.parametrize("settings", [{}, {"max_concurrent": 1}], ids=["free", "limited"])
def test_in_an_agent(settings: dict[str, Any]) -> None:
    agent = (
        Agent("asker")
        .add_action("ask", [InputEvent], ask)
        .add_resource("made", ResourceType.TOOL, ResourceDescriptor(clazz=ByName, **settings))
    )
    (found,) = run_agent(agent, ["Ulm"]).outputs
    assert found == [(), {"city": "Ulm"}, False, ((), {"days": 2}, False)]
