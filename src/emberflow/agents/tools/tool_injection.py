"""Injected arguments of tools, as the public API shows them: declared with `@tool(injected_args=…)`, filled by whoever calls
the tool for a model."""

from emberflow.operators.agents.resources.injected_arguments import injected_arguments
from emberflow.plan.agents.injected_args import InjectedArg, ToolParameterSource

__all__ = ["InjectedArg", "ToolParameterSource", "injected_arguments"]
