"""`run_agent`: runs an agent in a unit test, in three lines.

run = run_agent(Greeter(), ["hello", "hello again"])
assert run.outputs == ["hi", "hi for the 2nd time"]
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from emberflow.agents.agent import Agent
from emberflow.agents.environment import AgentsExecutionEnvironment
from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Clock
from emberflow.events.agent_events import Event
from emberflow.observability.listeners import EventContext
from emberflow.plan.agents.config import ConfigOption
from emberflow.plan.agents.options import AgentConfigOptions
from emberflow.plan.agents.resources import ResourceType

ONE_KEY = "test"
"""The key of inputs without one: they form one conversation."""


@dataclass(slots=True)
class AgentTestRun:
    """What an agent did: outputs and events in order."""

    outputs: list[Any] = field(default_factory=list[Any])
    by_key: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])
    events: list[Event] = field(default_factory=list[Event])
    """Inputs, outputs and memory events included (the option `memory.generate-event` switches memory events off). Only on
    `local`: on Spark agents run in other processes."""

    def sent(self, kind: str | type[Event]) -> list[Event]:
        """The events of one type."""
        wanted = kind if isinstance(kind, str) else kind.EVENT_TYPE
        return [event for event in self.events if event.type == wanted]


def run_agent(
    agent: Agent,
    inputs: Iterable[Any],
    *,
    resources: dict[tuple[str, ResourceType], Any] | None = None,
    options: dict[ConfigOption[Any], Any] | None = None,
    engine: str = "local",
    clock: Clock | None = None,
) -> AgentTestRun:
    """Runs an agent over inputs to its end. An input is a value (all such inputs share one key) or
    `{"key": …, "value": …}`; `resources` replace the agent's own of the same name and type."""
    run = AgentTestRun()
    agents_env = AgentsExecutionEnvironment.get_execution_environment(engine=engine, parallelism=1)
    config = agents_env.get_config()
    for option, value in (options or {}).items():
        config.set(option, value)
    if engine == "local":

        def listen(event: Event, context: EventContext) -> None:
            run.events.append(event)

        config.set(
            AgentConfigOptions.EVENT_LISTENERS,
            [*(config.get(AgentConfigOptions.EVENT_LISTENERS) or []), listen],
        )
        if clock is not None:
            agents_env.env.set_option("clock", clock)
    elif clock is not None:
        raise InvalidArgument("a clock can be given to the local engine only")
    stand_in = _with_resources(agent, resources or {})
    results = agents_env.from_list([_pair(item) for item in inputs]).apply(stand_in).to_list()
    agents_env.execute(f"test of {agent.name}")
    for result in results:
        ((key, output),) = result.items()
        run.outputs.append(output)
        run.by_key.setdefault(key, []).append(output)
    return run


def _pair(item: Any) -> dict[str, Any]:
    if isinstance(item, dict) and set(item) == {"key", "value"}:  # pyright: ignore[reportUnknownArgumentType]
        return item  # pyright: ignore[reportUnknownVariableType]
    return {"key": ONE_KEY, "value": item}


def _with_resources(agent: Agent, resources: dict[tuple[str, ResourceType], Any]) -> Agent:
    """A copy of the agent with some resources replaced."""
    if not resources:
        return agent
    changed: Any = copy.copy(agent)
    changed.replacements = resources
    return changed
