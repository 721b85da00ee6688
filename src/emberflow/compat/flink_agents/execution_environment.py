"""`AgentsExecutionEnvironment` as Flink Agents' programs use it: their calls block, and chat models have its defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from emberflow.agents import AgentExecutionOptions
from emberflow.agents import AgentsExecutionEnvironment as _AgentsExecutionEnvironment
from emberflow.agents import ResourceDescriptor as _ResourceDescriptor
from emberflow.compat.flink_agents.chat_models import class_there
from emberflow.plan.agents.resources import ResourceType
from emberflow.streams.environment import StreamExecutionEnvironment

if TYPE_CHECKING:
    from emberflow.streams.tables import StreamTableEnvironment


class AgentsExecutionEnvironment(_AgentsExecutionEnvironment):
    """Differs in the default of the option `calls.block`, and in the classes that short names in YAML stand for."""

    def __init__(self, env: StreamExecutionEnvironment, t_env: StreamTableEnvironment | None = None) -> None:
        super().__init__(env, t_env)
        self.get_config().set(AgentExecutionOptions.CALLS_BLOCK, True)

    def load_yaml(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Self:
        """Like that of `emberflow.agents`."""
        super().load_yaml(paths)
        for resources in (self.resources, *(agent.resources for agent in self.agents.values())):
            _use_classes_there(resources)
        return self


def _use_classes_there(resources: dict[ResourceType, dict[str, Any]]) -> None:
    for named in resources.values():
        for name, value in named.items():
            if isinstance(value, _ResourceDescriptor):
                clazz = class_there(f"{value.target_module}.{value.target_clazz}")
                if clazz is not None:
                    named[name] = _ResourceDescriptor(clazz=clazz, arguments=value.arguments)
