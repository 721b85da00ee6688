"""Injected arguments of tools (A37): hidden from the model, read from the configuration or from memory."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    FunctionTool,
    InjectedArg,
    InputEvent,
    OutputEvent,
    ResourceType,
    RunnerContext,
    Tool,
    ToolParameterSource,
    action,
    injected_arguments,
    tool,
)
from emberflow.errors import InvalidAgent, InvalidArgument


@tool(
    injected_args={
        "tenant": InjectedArg.from_config("tenant_id"),
        "user": InjectedArg.from_short_term_memory("session.user"),
        "trace_id": InjectedArg(),
    }
)
def query_order(order_id: int, tenant: str, user: object, trace_id: str = "none") -> str:
    """Looks an order up.

    Args:
        order_id: the order
        tenant: whose order
    """
    return f"{tenant}/{user}/{order_id}/{trace_id}"


def call(*args: Any, **kwargs: Any) -> Any:
    return asyncio.run(FunctionTool(query_order).call(*args, **kwargs))


def test_the_model_does_not_see_them() -> None:
    schema = FunctionTool(query_order).metadata.args_schema
    assert schema["properties"] == {"order_id": {"type": "integer", "description": "the order"}}
    assert schema["required"] == ["order_id"]


def test_what_a_model_sends_under_their_names_is_ignored() -> None:
    sent = {"order_id": 3.0, "tenant": "stolen", "user": "root"}
    assert call(sent, tenant="a", user="ann") == "a/ann/3/none"
    with pytest.raises(InvalidArgument, match="needs the injected argument 'tenant'"):
        call(sent)


def test_they_are_used_as_they_are() -> None:
    assert call(order_id=1, tenant=["any"], user={"x": 1}) == "['any']/{'x': 1}/1/none"


def test_other_arguments_are_still_checked() -> None:
    with pytest.raises(InvalidArgument, match=r"arguments\.order_id must be a whole number"):
        call({"order_id": "x"}, tenant="a", user="ann")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tenat": InjectedArg()}, "has no parameter 'tenat' to inject; did you mean 'tenant'?"),
        ({"tenant": 5}, "the injected argument 'tenant' must be an InjectedArg, got 5"),
        ({"tenant": {"source": "confg"}}, "cannot be read from 'confg'; did you mean 'config'?"),
        ({"tenant": {"sorce": "config"}}, "has no field 'sorce'; did you mean 'source'?"),
    ],
)
def test_mistakes_in_a_declaration(given: Any, said: str) -> None:
    def look_up(tenant: str) -> None: ...

    for declare in (tool(injected_args=given), lambda found: Tool.from_callable(found, injected_args=given)):
        with pytest.raises(InvalidAgent) as raised:
            declare(look_up)
        assert said in str(raised.value)


def test_declared_in_two_places() -> None:
    same = Tool.from_callable(query_order, injected_args={"tenant": {"source": "CONFIG", "key": "tenant_id"}})
    assert same.injected_args["tenant"] == InjectedArg(ToolParameterSource.CONFIG, "tenant_id")
    assert same.injected_args["trace_id"] == InjectedArg.from_sensory_memory("trace_id")
    with pytest.raises(InvalidAgent, match="two sources, config 'tenant_id' and config 'other'"):
        Tool.from_callable(query_order, injected_args={"tenant": InjectedArg.from_config("other")})


def test_a_tool_with_injected_arguments_can_be_pickled() -> None:
    back = pickle.loads(pickle.dumps(FunctionTool(query_order)))
    assert asyncio.run(back.call({"order_id": 1, "user": "x"}, tenant="a", user="ann")) == "a/ann/1/none"


class Shop(Agent):
    query_order = staticmethod(query_order)

    @action(InputEvent)
    @staticmethod
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        if event.input == "login":
            ctx.short_term_memory.set("session.user", "ann")
            ctx.send_event(OutputEvent("in"))
            return
        ctx.sensory_memory.set("trace_id", f"t{event.input}")
        found = ctx.get_resource("query_order", ResourceType.TOOL)
        both = [
            await ctx.call_tool("query_order", order_id=event.input, tenant="stolen"),
            await found.call({"order_id": event.input, "user": "root"}, **injected_arguments(found, ctx)),
        ]
        ctx.send_event(OutputEvent(both))


def run(inputs: list[Any], tenant: str | None = "acme") -> list[Any]:
    env = AgentsExecutionEnvironment.get_execution_environment(engine="local", parallelism=1)
    if tenant:
        env.get_config().set_str("tenant_id", tenant)
    outputs = env.from_list([{"key": "k", "value": item} for item in inputs]).apply(Shop()).to_list()
    env.execute()
    return [item["k"] for item in outputs]


def test_they_are_read_from_the_configuration_and_from_memory() -> None:
    assert run(["login", 7]) == ["in", ["acme/ann/7/t7", "acme/ann/7/t7"]]


def test_a_missing_one_is_named_with_its_place() -> None:
    with pytest.raises(InvalidArgument) as raised:
        run([7])
    assert (
        "'user' of the tool 'query_order' is injected from the short term memory, which has no 'session.user'"
        in str(raised.value)
    )
    with pytest.raises(InvalidArgument, match="from the configuration, which has no 'tenant_id'"):
        run(["login", 7], tenant=None)
