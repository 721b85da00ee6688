"""What all runs of an agent share in one task: its plan and settings, resources, event log and the host's services.

Created by the agent operator; used by the action runner, parked runs, runs and executions. Makes no decisions itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from emberflow.events.agent_events import Event, OutputEvent
from emberflow.events.batch import Origin
from emberflow.events.identity import PLAIN, identity_of
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.agents.event_recorder import AgentRecorder
from emberflow.operators.agents.guards.budgets import Budgets
from emberflow.operators.agents.memory_observation import MemoryObservation
from emberflow.operators.agents.resources import resource_cache
from emberflow.operators.agents.routes import Routes
from emberflow.operators.host_services import CallService, HostServices
from emberflow.operators.operator import Step
from emberflow.operators.time_limit import on_thread
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.options import (
    AgentExecutionOptions,
    ErrorHandling,
    ReplayMismatchHandling,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.agents.resources import ResourceType
from emberflow.plan.agents.sub_agents import unknown_agent
from emberflow.plan.specs import AgentSpec
from emberflow.state.memory_object import MemoryObject, ObservedMemoryObject

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.calls.durable_calls import CallLog
    from emberflow.operators.agents.guards.questions import Approvals

_DIGESTS_KEPT = 100_000
_OUTPUT = OutputEvent.EVENT_TYPE


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The plan's options, read once."""

    max_event_bytes: int
    max_memory_bytes: int
    memory_ttl_ms: int
    refresh_on_read: bool
    max_steps: int
    max_in_flight: int
    threads: int
    on_error: ErrorHandling
    restarts_on_mismatch: bool
    calls_block: bool
    events_as_json: bool

    @staticmethod
    def of(plan: AgentPlan) -> AgentSettings:
        get = plan.config.get
        ttl_update = get(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_UPDATE_TYPE)
        mismatch = get(AgentExecutionOptions.ON_REPLAY_MISMATCH)
        return AgentSettings(
            max_event_bytes=get(AgentExecutionOptions.MAX_EVENT_BYTES),
            max_memory_bytes=get(AgentExecutionOptions.MAX_MEMORY_BYTES),
            memory_ttl_ms=get(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS),
            refresh_on_read=ttl_update is ShortTermMemoryTtlUpdate.ON_READ_AND_WRITE,
            max_steps=get(AgentExecutionOptions.MAX_STEPS),
            max_in_flight=get(AgentExecutionOptions.MAX_IN_FLIGHT),
            threads=get(AgentExecutionOptions.NUM_ASYNC_THREADS),
            on_error=get(AgentExecutionOptions.ON_ERROR),
            restarts_on_mismatch=mismatch is ReplayMismatchHandling.RESTART,
            calls_block=get(AgentExecutionOptions.CALLS_BLOCK),
            events_as_json=get(AgentExecutionOptions.EVENTS_AS_JSON),
        )

    @property
    def keeps_first(self) -> bool:
        """Whether a run must keep the event that started it, for a dead letter."""
        return self.on_error is ErrorHandling.DEAD_LETTER


class InFlight:
    """How much work the task has accepted and not finished."""

    __slots__ = ("attached", "detached", "waiting")

    def __init__(self) -> None:
        self.attached: set[AgentRun] = set()
        """Runs whose action is in flight and whose scope waits for it."""
        self.detached = 0
        """Actions that continue after their scope was committed."""
        self.waiting = 0
        """Inputs queued behind a run of their key."""

    @property
    def total(self) -> int:
        return len(self.attached) + self.detached + self.waiting


class AgentRuntime:
    """One per agent operator."""

    resources: resource_cache.ResourceCache
    """Set while the operator is open."""
    calls: CallService
    """Set once the operator is connected."""

    def __init__(self, step: Step, spec: AgentSpec) -> None:
        self.step = step
        self.plan = spec.plan
        self.settings = AgentSettings.of(spec.plan)
        self.routes = Routes(spec.plan)
        self.budgets = Budgets(spec.plan.budgets)
        self.metrics = MetricGroup(spec.plan.name)
        self.in_flight = InFlight()
        self.log: CallLog | None = None
        self.approvals: Approvals | None = None
        self.recorder: AgentRecorder | None = None
        self.observation: MemoryObservation | None = None
        """None if nobody sees memory events."""
        self.memory_view: type[MemoryObject] = MemoryObject
        self.keeps_events = self.settings.keeps_first or self.routes.handles_errors
        """Whether an event is needed after its last action has received it."""
        self.keeps_outputs = False
        """Whether an output is needed after it was emitted."""
        self._spec = spec
        self.api = spec.api
        self._ledgers: Any = None
        self._secrets: set[str] | None = None
        """Those of the agent that calls this one."""
        self._digests: dict[Any, str] = {}
        self.sub_agents: dict[str, AgentRuntime] = {}
        """The agents that this one has called, by name."""

    def connect(self, host: HostServices) -> None:
        assert host.calls is not None, "an agent needs a call service"
        self.calls = host.calls
        self.log = host.log
        self.approvals = host.approvals
        self._ledgers = host.ledgers

    def open(self) -> None:
        # First what may fail: an operator that could not be opened is not closed.
        self.recorder = AgentRecorder.of(self.plan)
        if self.recorder is not None:
            # It writes events some time after they were sent.
            self.keeps_events = self.keeps_outputs = True
        self.observation = MemoryObservation.of(self)
        if self.observation is not None and self.observation.reads:
            self.memory_view = ObservedMemoryObject
        self.resources = resource_cache.acquire(
            self._spec.plan_id, self.plan, self._ledgers, self.metrics, self.api.make_tool, self._secrets
        )
        if self.recorder is not None:
            self.recorder.secrets = self.resources.secrets

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
        resource_cache.release(self._spec.plan_id)
        for runtime in self.sub_agents.values():
            runtime.close()
        self.sub_agents.clear()

    def sub_agent(self, name: str) -> AgentRuntime:
        """The runtime of an agent that this one calls; opened by the first call. Raises ResourceFailed."""
        found = self.sub_agents.get(name)
        if found is None:
            known = self.plan.resource_providers.get(ResourceType.AGENT, {})
            if name not in known:
                raise unknown_agent(self.plan.name, name, known)
            spec = replace(self._spec, plan=known[name].instance, plan_id=f"{self._spec.plan_id}/{name}")
            found = AgentRuntime(self.step, spec)
            found.calls, found.log, found.approvals = self.calls, self.log, self.approvals
            found._ledgers, found._secrets = self._ledgers, self.resources.secrets
            found.open()
            self.sub_agents[name] = found
        return found

    def origins_of(self, sent: Iterable[Event]) -> list[Origin] | None:
        """The origins of the records that the outputs among these events become; None if they are not logged."""
        if self.recorder is None or not self.recorder.names_origins:
            return None
        return [(self.plan.name, event.id) for event in sent if event.type == _OUTPUT]

    def flush(self) -> None:
        """Passes what was recorded so far to the operating system."""
        if self.recorder is not None:
            self.recorder.flush()
        for runtime in self.sub_agents.values():
            runtime.flush()

    def in_thread(self, function: Callable[[], Any]) -> Awaitable[Any]:
        """Runs a blocking function on one of the agent's threads."""
        return on_thread(partial(self.calls.in_thread, threads=self.settings.threads), function)

    @property
    def full(self) -> bool:
        return self.in_flight.total >= self.settings.max_in_flight

    def key_digest(self, key: Any) -> str:
        """The key's identity: part of the ids of its runs, calls and events."""
        if key.__class__ not in PLAIN:
            # Not cached: a class may define keys as equal that are not identical.
            return identity_of(key, self.step.uid)
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) >= _DIGESTS_KEPT:
                self._digests.clear()
            found = self._digests[key] = identity_of(key, self.step.uid)
        return found
