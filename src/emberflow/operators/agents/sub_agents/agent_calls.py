"""Calls of sub-agents by actions, and by the chat loop when a model asks for one."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument
from emberflow.operators.agents.resources.durable_views import is_inside_a_call
from emberflow.operators.agents.sub_agents.sub_run import Path, check_may_wait, result_of, run_sub_agent

if TYPE_CHECKING:
    from emberflow.operators.agents.calls.durable_calls import ActionCalls
    from emberflow.operators.agents.execution import ActionExecution


def call_agent(
    execution: ActionExecution, name: str, value: Any, branch: ActionCalls | None = None
) -> Awaitable[Any]:
    """The result of the sub-agent for an input. Numbered here, not when it is awaited, like every durable call; `branch` has
    the calls of one chat."""
    check_may_wait(execution, name)
    execution.check_running("calls an agent")
    if is_inside_a_call():
        raise InvalidArgument(
            f"the agent {name!r} is called inside a durable call, where its own calls cannot be recorded",
            way_out="call it from the action itself",
        )
    durable = execution.durable_calls()
    calls = None if durable is None else (branch or durable).branch()
    path = (*execution.path, execution.count_unrecorded()) if calls is None else calls.path
    return _called(execution, name, value, calls, path)


async def _called(
    execution: ActionExecution, name: str, value: Any, calls: ActionCalls | None, path: Path
) -> Any:
    runtime = execution.run.runtime.sub_agent(name)
    return result_of(await run_sub_agent(runtime, execution, calls, path, value))
