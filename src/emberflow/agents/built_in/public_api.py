"""What the operators receive of the public API together with a plan."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from emberflow.agents.tools.agent_tool import AgentTool
from emberflow.agents.tools.function_tool import as_tool
from emberflow.operators.agents.resources.call_branch import CallBranch
from emberflow.plan.agents.agent_plan import AgentPlan


class PublicApi:
    """A `plan/agents/agent_api.py:AgentApi`."""

    def make_tool(self, name: str, function: Any) -> Any:
        """A function, or the plan of an agent, as a tool."""
        return AgentTool(name, function) if isinstance(function, AgentPlan) else as_tool(name, function)

    def chat(
        self,
        calls: CallBranch,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None,
        *,
        output: Any,
        max_steps: int | None,
        settings: dict[str, Any],
    ) -> Awaitable[Any]:
        """The loop of `ctx.chat`."""
        from emberflow.agents.built_in.chat_loop import chat_until_answered

        return chat_until_answered(
            calls, model, messages, prompt_args, output=output, max_steps=max_steps, settings=settings
        )
