"""Applies agents to plain DataFrames."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from emberflow.agents.agent import Agent
from emberflow.agents.environment import AgentsExecutionEnvironment
from emberflow.plan.agents.config import Configuration


def with_agent(
    agent: Agent,
    *,
    key: str | Callable[[Any], Any],
    schema: Any = None,
    config: Configuration | None = None,
    parallelism: int | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
) -> Callable[[Any], Any]:
    """For `df.transform(with_agent(agent, key="user_id"))`: every row is an input; rows with the same key are processed
    one by one.

    Works on batch and streaming DataFrames; the caller reads or starts the result. `schema` describes the outputs
    (dictionaries or tuples); without one the result has the key and `output`, a string. A streaming query that must
    survive a crash without repeating calls needs a `checkpoint_dir` in addition to its own `checkpointLocation`.
    """

    def transform(dataframe: Any) -> Any:
        session = getattr(dataframe, "sparkSession", None)
        agents_env = AgentsExecutionEnvironment.get_execution_environment(
            engine="local" if session is None else "spark",
            spark=session,
            parallelism=parallelism,
            checkpoint_dir=checkpoint_dir,
        )
        if config is not None:
            agents_env.get_config().update(config)
        return agents_env.from_dataframe(dataframe, key).apply(agent).to_dataframe(schema)

    return transform
