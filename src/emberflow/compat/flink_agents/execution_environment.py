"""`AgentsExecutionEnvironment` as Flink Agents' programs use it: their calls block, events hold what
JSON holds, and chat models have its defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from emberflow.agents import AgentExecutionOptions
from emberflow.agents import AgentsExecutionEnvironment as _AgentsExecutionEnvironment
from emberflow.agents.yaml.aliases import classes_instead
from emberflow.compat.flink_agents.chat_models import PATHS
from emberflow.streams.environment import StreamExecutionEnvironment

if TYPE_CHECKING:
    from emberflow.streams.tables import StreamTableEnvironment


class AgentsExecutionEnvironment(_AgentsExecutionEnvironment):
    """Differs in the defaults of the options `calls.block` and `events.as-json`, and in the classes that short names in YAML stand for."""

    def __init__(self, env: StreamExecutionEnvironment, t_env: StreamTableEnvironment | None = None) -> None:
        super().__init__(env, t_env)
        self.get_config().set(AgentExecutionOptions.CALLS_BLOCK, True)
        self.get_config().set(AgentExecutionOptions.EVENTS_AS_JSON, True)

    def load_yaml(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Self:
        """Like that of `emberflow.agents`."""
        with classes_instead(PATHS):
            return super().load_yaml(paths)
