"""`import emberflow.compat.flink_agents.install`, for notebooks: from here on `import flink_agents…` and `import pyflink…`
resolve to emberflow."""

from __future__ import annotations

from emberflow.compat.finder import install
from emberflow.compat.flink_agents.package import FLINK_AGENTS

install(FLINK_AGENTS)
