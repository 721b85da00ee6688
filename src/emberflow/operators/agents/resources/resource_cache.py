"""An agent's resources in one process: created on first use, shared by all tasks, closed with the last one."""

from __future__ import annotations

import inspect
import logging
import threading
from typing import Any

from emberflow.errors import (
    EmberflowError,
    InvalidArgument,
    ResourceFailed,
    UnknownResource,
    describe_cause,
    did_you_mean,
)
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.admission.gate import Gate, Ledgers, MemoryLedgers
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.agents.calls.masked_errors import mask
from emberflow.operators.agents.calls.masked_log import mask_in_log
from emberflow.operators.agents.resources.resource_views import FunctionToolView, admitted, unwrapped
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.known_secrets import secret_values
from emberflow.plan.agents.resource_arguments import unknown_argument
from emberflow.plan.agents.resource_providers import ResourceProvider
from emberflow.plan.agents.resources import MakeTool, Resource, ResourceType, Secret, keep_function

_log = logging.getLogger("emberflow.agents")

_CONNECTIONS = {
    ResourceType.CHAT_MODEL_CONNECTION: "chat",
    ResourceType.EMBEDDING_MODEL_CONNECTION: "embed",
}
"""Resources that call a service, with the method that does: admission is decided here."""
LIMITED = {
    **_CONNECTIONS,
    ResourceType.CHAT_MODEL: "chat",
    ResourceType.EMBEDDING_MODEL: "embed",
    ResourceType.TOOL: "call",
}
"""Resources that may have limits in their descriptor."""


class ResourceCache:
    """Actions may use it from several threads concurrently."""

    def __init__(
        self,
        plan: AgentPlan,
        ledgers: Ledgers | None = None,
        make_tool: MakeTool = keep_function,
        secrets: set[str] | None = None,
    ) -> None:
        self._plan = plan
        self._make_tool = make_tool
        self._ledgers = MemoryLedgers() if ledgers is None else ledgers
        self._gates: dict[tuple[ResourceType, str], Gate] = {}
        self._metrics: list[MetricGroup] = []
        self._tools: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._made: dict[tuple[ResourceType, str], Any] = {}
        self._making: list[str] = []
        self.secrets = secret_values(plan) if secrets is None else secrets
        """The values of the secrets of the plan, shared with the agents that it calls; and of those that resources were
        created with, which may have changed since."""
        mask_in_log(self)
        self.users = 0

    def get_resource(self, name: str, type: ResourceType) -> Any:
        """What other resources receive: a function that is declared as a tool is a tool, which may also be called like the
        function."""
        if type is not ResourceType.TOOL:
            return self._get(name, type)
        tool: Any = self.get_tool(name)
        call: Any = getattr(tool, "call", None)
        is_function = not callable(tool) and callable(getattr(tool, "func", None))
        return FunctionToolView(tool, "call", call) if is_function else tool

    def _get(self, name: str, type: ResourceType) -> Any:
        found = self._made.get((type, name))
        if found is not None:
            return found
        with self._lock:
            found = self._made.get((type, name))
            return self._make(name, type) if found is None else found

    def names(self, type: ResourceType) -> list[str]:
        return list(self._plan.resource_providers.get(type, {}))

    def get_tool(self, name: str) -> Any:
        """A tool that can be called in any form, also if the resource is a plain function."""
        found = self._tools.get(name)
        if found is not None:
            return found
        found = self._get(name, ResourceType.TOOL)
        if not hasattr(found, "call") and not callable(found):
            return found
        with self._lock:
            if name not in self._tools:
                self._tools[name] = self._make_tool(name, found)
            return self._tools[name]

    def _agent_as_tool(self, name: str, kind: ResourceType) -> Any:
        """The tool with which a model calls a sub-agent."""
        agents = self._plan.resource_providers.get(ResourceType.AGENT, {})
        return (
            self._make_tool(name, agents[name].instance)
            if kind is ResourceType.TOOL and name in agents
            else None
        )

    def show_in(self, metrics: MetricGroup) -> None:
        """Shows in the group how many calls wait for which model."""
        with self._lock:
            self._metrics.append(metrics)
            for (_, name), gate in self._gates.items():
                gate.publish(metrics.get_sub_group("model", name))

    def _make(self, name: str, kind: ResourceType) -> Any:
        provider = self._plan.resource_providers.get(kind, {}).get(name)
        if provider is None:
            offered = self._agent_as_tool(name, kind) or self._offered(name, kind)
            if offered is None:
                raise self._unknown(name, kind)
            self._made[(kind, name)] = offered
            return offered
        label = f"{kind.value} {name!r}"
        if label in self._making:
            circle = " -> ".join([*self._making[self._making.index(label) :], label])
            raise ResourceFailed(
                f"agent {self._plan.name!r}: resources depend on each other in a cycle: {circle}"
            )
        self._making.append(label)
        try:
            made = self._create(provider)
            self._made[(kind, name)] = made
            return made
        except EmberflowError:
            raise
        except Exception as error:
            cause = describe_cause(error)
            shown = self._masked(cause)
            raise ResourceFailed(
                f"agent {self._plan.name!r}: the {label} could not be created",
                cause=shown,
                way_out="check the arguments of its descriptor, and that what it connects to is reachable",
                # A stack trace would show the secret that is masked in the cause.
            ) from (error if shown == cause else None)
        finally:
            self._making.pop()

    def _offered(self, name: str, kind: ResourceType) -> Any:
        """A tool or prompt that the agent does not define, but that its MCP servers may have; None without servers. They are
        asked when it is first used: a server that is down must not fail actions that do not need it."""
        if kind not in (ResourceType.TOOL, ResourceType.PROMPT):
            return None
        names = self._plan.resource_providers.get(ResourceType.MCP_SERVER, {})
        servers = [self.get_resource(server, ResourceType.MCP_SERVER) for server in names]
        return servers[0].offered(name, kind, servers) if servers else None

    def _create(self, provider: ResourceProvider) -> Any:
        descriptor = provider.descriptor
        limits = ModelLimits()
        if descriptor is None:
            made = provider.instance
        else:
            arguments = descriptor.arguments
            if provider.type in LIMITED:
                label, own = f"{provider.type.value} {provider.name!r}", _parameters(descriptor.clazz)
                limits, arguments = ModelLimits.taken_from(label, arguments, own)
            problem = unknown_argument(descriptor.clazz, arguments)
            if problem is not None:
                raise InvalidArgument(problem.message, way_out=problem.way_out)
            made = descriptor.clazz(**{name: self._revealed(value) for name, value in arguments.items()})
            if isinstance(made, Resource):
                made.secret_origins = {
                    name: value.origin for name, value in arguments.items() if isinstance(value, Secret)
                }
        if hasattr(made, "open"):
            made.resource_context = self
            try:
                made.open()
            except BaseException:
                # It is never returned, so release what it already holds.
                _close(provider.type, provider.name, made)
                raise
        return self._limited(provider, made, limits)

    def _limited(self, provider: ResourceProvider, made: Any, limits: ModelLimits) -> Any:
        """Calls of connections are throttled when their service asks for it, whether or not they have limits."""
        method = LIMITED.get(provider.type)
        talks = provider.type in _CONNECTIONS or (
            # A user's own model, without a connection that would do it.
            provider.type is not ResourceType.TOOL and not hasattr(made, "connection")
        )
        if method is None or not (talks or limits != ModelLimits()):
            return made
        label = f"{provider.type.value} {provider.name!r}"
        ledger, part = self._ledgers.of(f"{label} {limits}", limits)
        gate = Gate(f"the {label}", part, ledger)
        view = admitted(made, method, gate)
        if view is not made:
            self._gates[(provider.type, provider.name)] = gate
            for metrics in self._metrics:
                gate.publish(metrics.get_sub_group("model", provider.name))
        return view

    def _revealed(self, value: Any) -> Any:
        """The argument with references to secrets replaced by their values, also inside dictionaries and lists."""
        if isinstance(value, Secret):
            found = value.resolve()
            if found.strip():
                # Whoever sends it leaves out a line break at its end.
                self.secrets.add(found.strip())
            return found
        if value.__class__ is dict:
            return {name: self._revealed(item) for name, item in value.items()}
        if value.__class__ is list:
            return [self._revealed(item) for item in value]
        return tuple(self._revealed(item) for item in value) if value.__class__ is tuple else value

    def hide_secrets(self, error: EmberflowError) -> bool:
        """Masks the secrets that resources were created with; returns whether there were any in the error."""
        message, cause = self._masked(error.message), self._masked(error.cause)
        if (message, cause) == (error.message, error.cause):
            return False
        error.message, error.cause = message, cause
        return True

    def _masked(self, text: str) -> str:
        return mask(text, self.secrets)

    def _unknown(self, name: str, kind: ResourceType) -> UnknownResource:
        named = self._plan.resource_providers.get(kind, {})
        hint = did_you_mean(name, named)
        known = ", ".join(map(repr, named)) or "none"
        elsewhere = [other.value for other, items in self._plan.resource_providers.items() if name in items]
        cause = (
            f"there is a {elsewhere[0]} of that name" if elsewhere else f"its {kind.value} resources: {known}"
        )
        return UnknownResource(
            f"agent {self._plan.name!r} has no {kind.value} named {name!r}{hint}",
            cause=cause,
            way_out=f"declare it in the agent or with add_resource({name!r}, ResourceType.{kind.name}, …)",
        )

    def close(self) -> None:
        """Closes in reverse order of creation: a resource is closed before those it depends on."""
        with self._lock:
            for gate in self._gates.values():
                gate.close()
            for (kind, name), made in reversed(self._made.items()):
                _close(kind, name, unwrapped(made))
            self._made.clear()
            self._tools.clear()
            self._gates.clear()


def _parameters(clazz: type[Any]) -> list[str]:
    try:
        return list(inspect.signature(clazz).parameters)
    except (TypeError, ValueError):
        return []


def _close(kind: ResourceType, name: str, made: Any) -> None:
    close = getattr(made, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as error:
        _log.warning("closing the %s %r failed: %s", kind.value, name, describe_cause(error))


_caches: dict[str, ResourceCache] = {}
_caches_lock = threading.Lock()


def acquire(
    plan_id: str,
    plan: AgentPlan,
    ledgers: Ledgers | None = None,
    metrics: MetricGroup | None = None,
    make_tool: MakeTool = keep_function,
    secrets: set[str] | None = None,
) -> ResourceCache:
    """The resources of this process for one use of an agent. `ledgers` are the job's, for limits shared by agents and
    processes; `metrics` shows how many calls wait for models; `make_tool` turns plain functions into tools; `secrets`
    are those of the agent that calls this one."""
    with _caches_lock:
        cache = _caches.get(plan_id)
        if cache is None:
            cache = _caches[plan_id] = ResourceCache(plan, ledgers, make_tool, secrets)
        cache.users += 1
    if metrics is not None:
        cache.show_in(metrics)
    return cache


def release(plan_id: str) -> None:
    """Closes the resources when they are no longer used."""
    with _caches_lock:
        cache = _caches.get(plan_id)
        if cache is None:
            return
        cache.users -= 1
        if cache.users > 0:
            return
        del _caches[plan_id]
    cache.close()
