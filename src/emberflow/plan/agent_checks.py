"""Mistakes in an agent, found when its plan is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberflow.errors import InvalidAgent

if TYPE_CHECKING:
    from emberflow.plan.agent_plan import AgentPlan


def check(plan: AgentPlan) -> list[str]:
    """Raises what cannot work; returns warnings about what is probably not meant."""
    if not plan.actions:
        raise InvalidAgent(
            f"agent {plan.name!r} has no actions",
            way_out="mark methods with @action(InputEvent), or use add_action()",
        )
    return []
