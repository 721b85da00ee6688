"""A compiled agent: which events trigger which actions, with which resources and settings.

Frozen data that contains functions. `plan/agents/actions.py` reads the agent, `plan/agents/checks.py` checks a new plan,
`operators/agents/agent_operator.py` runs it, `plan/agents/picture.py` draws it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from typing import Any

from emberflow.errors import InvalidAgent, ProgramError, describe_cause
from emberflow.plan import json_functions
from emberflow.plan.agents.action_code import sends_later
from emberflow.plan.agents.actions import Action, Trigger, actions_of
from emberflow.plan.agents.built_in_actions import built_in_actions
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.guards import Budget, budgets_of, check_fallbacks
from emberflow.plan.agents.resource_providers import ResourceProvider, providers_from, providers_from_json
from emberflow.plan.agents.resources import ResourceType
from emberflow.plan.agents.sub_agents import Callers, compiled_agents, description_of, shared_with
from emberflow.plan.json_values import from_json_value, to_json_value

__all__ = ["VERSION", "Action", "AgentPlan", "Trigger", "agent_name"]

VERSION = 1

_log = logging.getLogger("emberflow.agents")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """Created by `from_agent`, which checks it; `to_json` and `from_json` store and load it."""

    name: str
    actions: dict[str, Action]
    resource_providers: dict[ResourceType, dict[str, ResourceProvider]]
    config: Configuration = field(default_factory=Configuration)
    budgets: tuple[Budget, ...] = ()
    warnings: tuple[str, ...] = ()
    description: str = ""
    """What the agent does, for models that may call it."""
    input_type: Any = None
    """The type of its inputs, for models that may call it; None for text."""

    @staticmethod
    def from_agent(
        agent: Any,
        config: Configuration | None = None,
        resources: Any = None,
        *,
        name: str = "",
        callers: Callers = (),
    ) -> AgentPlan:
        """Compiles and checks an agent; `resources` are shared by all agents of an environment. `name` replaces that of an
        agent that is a resource of others, the `callers`. Raises InvalidAgent."""
        from emberflow.plan.agents.checks import check

        name = name or agent_name(agent)
        found = {item.name: item for item in actions_of(agent, name)}
        callers = (*callers, agent)
        providers = providers_from(name, agent, shared_with(callers, resources))

        def compile_agent(inner: Any, inner_name: str) -> AgentPlan:
            return AgentPlan.from_agent(inner, config, resources, name=inner_name, callers=callers)

        providers = compiled_agents(name, providers, callers, compile_agent)
        plan = AgentPlan(
            name=name,
            actions={**found, **built_in_actions(agent, name, found, providers)},
            resource_providers=providers,
            config=config or Configuration(),
            budgets=budgets_of(agent, name),
            description=description_of(agent),
            input_type=getattr(agent, "input_type", None),
        )
        check_fallbacks(name, found)
        warnings = tuple(check(plan))
        for warning in warnings:
            _log.warning("agent %r: %s", name, warning)
        return replace(plan, warnings=warnings)

    @property
    def agent_name(self) -> str:
        """The name, as Flink Agents calls it."""
        return self.name

    @property
    def actions_by_event(self) -> dict[str, list[str]]:
        """Event type -> the actions it triggers by its type alone."""
        by_type: dict[str, list[str]] = {}
        for item in self.actions.values():
            for trigger in item.triggers:
                if trigger.type and item.name not in by_type.setdefault(trigger.type, []):
                    by_type[trigger.type].append(item.name)
        return by_type

    def get_actions(self, event_type: str) -> list[Action]:
        """The actions that an event of this type may trigger."""
        return [self.actions[name] for name in self.actions_by_event.get(event_type, [])]

    @property
    def is_async(self) -> bool:
        """Whether an action may wait or send a delayed event: work may then outlive its input."""
        return any(item.may_wait or sends_later(item.function) for item in self.actions.values())

    @property
    def package_data(self) -> tuple[tuple[str, str], ...]:
        """What the skills of the agent, and of those that it calls, need: packages, each with a path in it."""
        found = [
            getattr(provider.instance, "package_data", ())
            for kind in (ResourceType.SKILLS, ResourceType.AGENT)
            for provider in self.resource_providers.get(kind, {}).values()
        ]
        return tuple(dict.fromkeys(item for items in found for item in items))

    def to_json(self, indent: int | None = None) -> str:
        """The plan as JSON; functions that cannot be imported are pickled, secrets are never included."""
        body = {
            "version": VERSION,
            "name": self.name,
            "actions": [item.to_json() for item in self.actions.values()],
            "actions_by_event": self.actions_by_event,
            "resource_providers": {
                kind.value: {name: provider.to_json() for name, provider in named.items()}
                for kind, named in self.resource_providers.items()
                if named
            },
            "config": to_json_value(self.config.to_dict()),
            **({"budgets": [budget.to_json() for budget in self.budgets]} if self.budgets else {}),
            "warnings": list(self.warnings),
            **({"description": self.description} if self.description else {}),
            **({} if self.input_type is None else {"input_type": json_functions.to_json(self.input_type)}),
        }
        return json.dumps(body, indent=indent)

    @staticmethod
    def from_json(text: str) -> AgentPlan:
        """Loads a plan written by `to_json`; raises InvalidAgent. Unpickles: load only plans that you trust."""
        try:
            body = json.loads(text)
            version = body["version"]
            if version != VERSION:
                raise InvalidAgent(
                    f"an agent plan of format {version} cannot be read", way_out="update emberflow"
                )
            actions = [Action.from_json(item) for item in body["actions"]]
            return AgentPlan(
                name=body["name"],
                actions={item.name: item for item in actions},
                resource_providers=providers_from_json(
                    body["resource_providers"], lambda inner: AgentPlan.from_json(json.dumps(inner))
                ),
                config=Configuration(from_json_value(body["config"])),
                budgets=tuple(Budget.from_json(item) for item in body.get("budgets", ())),
                warnings=tuple(body["warnings"]),
                description=body.get("description", ""),
                input_type=json_functions.from_json(body["input_type"]) if "input_type" in body else None,
            )
        except ProgramError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidAgent(
                "this is not an agent plan",
                cause=describe_cause(error),
                way_out="create one with plan.to_json()",
            ) from error

    def explain(self, form: str = "text") -> str:
        """The plan as `text`, `mermaid` or `json`."""
        from emberflow.plan.agents.picture import render_agent

        return self.to_json(indent=2) if form == "json" else render_agent(self, form)


def agent_name(agent: Any) -> str:
    return str(getattr(agent, "name", None) or type(agent).__name__)
