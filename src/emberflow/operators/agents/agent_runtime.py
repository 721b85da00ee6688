"""What all runs of an agent share in one task: its plan and settings, resources, event log and the host's services.

Created by the agent operator; used by the action runner, parked runs, runs and executions. Makes no decisions itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emberflow.events.agent_events import OutputEvent
from emberflow.events.identity import PLAIN, identity_of
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.agents.event_recorder import AgentRecorder
from emberflow.operators.agents.guards.budgets import Budgets
from emberflow.operators.agents.resources import resource_cache
from emberflow.operators.agents.routes import Routes
from emberflow.operators.host_services import CallService, HostServices
from emberflow.operators.operator import Step
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.options import (
    AgentExecutionOptions,
    ErrorHandling,
    ReplayMismatchHandling,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.specs import AgentSpec

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.calls.durable_calls import CallLog
    from emberflow.operators.agents.guards.questions import Approvals

_DIGESTS_KEPT = 100_000


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
        self.keeps_events = self.settings.keeps_first or self.routes.handles_errors
        """Whether an event is needed after its last action has received it."""
        self.keeps_outputs = any(
            OutputEvent.EVENT_TYPE in item.types or item.matches for item in self.routes.actions.values()
        )
        """Whether an output is needed after it was emitted."""
        self._plan_id = spec.plan_id
        self._make_tool = spec.make_tool
        self._ledgers: Any = None
        self._digests: dict[Any, str] = {}

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
        self.resources = resource_cache.acquire(
            self._plan_id, self.plan, self._ledgers, self.metrics, self._make_tool
        )

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
        resource_cache.release(self._plan_id)

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
