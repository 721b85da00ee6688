"""What the operators need from the public API of agents, which is above them: passed in with the plan."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from emberflow.errors import NotSupported
from emberflow.plan.agents.resources import keep_function


class AgentApi(Protocol):
    """Has no state: it is pickled by the name of its class."""

    def make_tool(self, name: str, function: Any) -> Any:
        """The tool with this name for a plain function."""
        ...

    def chat(
        self,
        calls: Any,
        model: str,
        messages: Any,
        prompt_args: Mapping[str, Any] | None,
        *,
        output: Any,
        max_steps: int | None,
        settings: dict[str, Any],
    ) -> Awaitable[Any]:
        """The final answer of a chat model, whose tools are called in between. `calls` is a
        `operators/agents/resources/call_branch.py:CallBranch`."""
        ...


class NoApi:
    """For plans whose tools are tools already, and whose actions use models and tools only as resources."""

    def make_tool(self, name: str, function: Any) -> Any:
        return keep_function(name, function)

    def chat(self, *given: Any, **settings: Any) -> Awaitable[Any]:
        raise NotSupported("this agent was not created by the API of agents, so it cannot chat")


NO_API = NoApi()
