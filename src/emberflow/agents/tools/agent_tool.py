"""`AgentTool`: an agent as a model sees it, a tool that takes one input."""

from __future__ import annotations

from typing import Any

from emberflow.agents.tools.function_tool import FunctionTool, Tool, ToolType
from emberflow.errors import InvalidArgument
from emberflow.plan.agents.agent_plan import AgentPlan


class AgentTool(Tool):
    """Offered for each resource of the type AGENT. The loop of a chat runs the agent as part of the calling action, and
    not as one call: so its own calls of models and tools are durable."""

    def __init__(self, name: str, plan: AgentPlan) -> None:
        self._input: Any = str if plan.input_type is None else plan.input_type

        def run(input: Any) -> None: ...

        run.__annotations__ = {"input": self._input}
        described = FunctionTool(run, name=name, description=plan.description or f"Asks the agent {name!r}.")
        self._described = described
        self.metadata = described.metadata

    @classmethod
    def tool_type(cls) -> ToolType:
        """Always `ToolType.AGENT`."""
        return ToolType.AGENT

    def input_of(self, arguments: dict[str, Any]) -> Any:
        """The input in the arguments that a model sent, as a value of the agent's input type. Raises InvalidArgument."""
        return self._described._read(arguments)["input"]

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Raises InvalidArgument: an agent runs inside an action of another one."""
        raise InvalidArgument(
            f"the agent {self.name!r} cannot be called as a tool",
            way_out=f"await ctx.call_agent({self.name!r}, …) in an action",
        )
