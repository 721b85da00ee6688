"""`AgentConfigOptions` as Flink Agents' programs use it: options without a counterpart name the way out."""

from __future__ import annotations

from typing import Any

from emberflow.agents import AgentConfigOptions as _AgentConfigOptions
from emberflow.compat.flink_agents import missing
from emberflow.errors import FlinkAgentsOnly, did_you_mean


class _NamesTheWayOut(type):
    """Fails when an option is named that Flink Agents has and emberflow has not."""

    def __getattr__(cls, name: str) -> Any:
        if name in missing.OPTIONS:
            raise FlinkAgentsOnly(
                f"emberflow has no option AgentConfigOptions.{name}", way_out=missing.OPTIONS[name]
            )
        known = [option for option in vars(_AgentConfigOptions) if option.isupper()]
        raise AttributeError(f"AgentConfigOptions has no option {name!r}{did_you_mean(name, known)}")


class AgentConfigOptions(_AgentConfigOptions, metaclass=_NamesTheWayOut):
    """Options of trigger expressions, event logs and listeners, for `get_config().set(option, value)`."""
