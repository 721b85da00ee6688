"""The processing of one input by an agent: the tasks it triggered, and the inputs of its key that are queued behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument, ProgramChanged, shorten
from emberflow.events.agent_events import Event, InputEvent
from emberflow.events.batch import Origin
from emberflow.events.copies import copied_without_models
from emberflow.events.json_values import json_value
from emberflow.events.run_ids import ActionId, format_action, format_delayed_run, format_event, format_run
from emberflow.operators.agents.calls.failed_calls import FailedCall
from emberflow.operators.agents.guards.attempts import Failure
from emberflow.operators.agents.guards.budgets import Amounts, Budgets, KeySpending, added
from emberflow.operators.agents.guards.delayed_events import Delayed
from emberflow.operators.agents.routes import RunnableAction
from emberflow.operators.agents.run_memory import RunMemory
from emberflow.operators.agents.sent_events import sent_copy
from emberflow.operators.scope import Scope
from emberflow.state.entry import Entry

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_runtime import AgentRuntime
    from emberflow.operators.agents.execution import ActionExecution
    from emberflow.operators.watermarks.watermark_holds import Segment
    from emberflow.state.memory import Write

Task = tuple[RunnableAction, Event]

# Names in a key's entry.
SEQUENCE = "seq"
RUN = "run"
BUDGETS = "budgets"

_VERSION = 1
_WITH_GUARDS = 2
"""The same with one more field, for a run that uses guards."""


class RunState(Enum):
    """What waits for the run's action."""

    ATTACHED = "attached"
    """This task: it drives the run, and its scope waits for the action in flight, if there is one."""
    DETACHED = "detached"
    """Nothing: the scope was committed in the meantime. The action continues and records its outcome in the log."""
    DORMANT = "dormant"
    """The process that runs the action: this one has only the stored run."""


class AgentRun:
    """Belongs to one key from its first input until nothing of the key is in flight."""

    caller: ActionExecution | None = None
    """The action of another agent that called this one."""

    __slots__ = (
        "_failed_before",
        "_memory",
        "_ordinal",
        "_prefix",
        "current",
        "early",
        "entry",
        "execution",
        "failure",
        "first",
        "handled",
        "key",
        "origin",
        "runtime",
        "scope",
        "segment",
        "sequence",
        "spent",
        "state",
        "steps",
        "tasks",
        "timestamp",
        "waiting",
    )

    def __init__(self, runtime: AgentRuntime, scope: Scope, key: Any, entry: Entry) -> None:
        self.runtime = runtime
        self.scope = scope
        self.key = key
        self.entry = entry
        self.state = RunState.ATTACHED
        self._memory: RunMemory | None = None
        self.tasks: deque[Task] = deque()
        self.waiting: deque[tuple[Any, int | None, Segment, Origin | None]] = deque()
        self.current: Task | None = None
        self.execution: ActionExecution | None = None
        """The execution of the action in flight."""
        self.segment: Segment | None = None
        self.first: Event | None = None
        """The event that started the run."""
        self.origin: Origin | None = None
        """Which event of another agent caused it, if that agent logs its events."""
        self.failure: Failure | None = None
        """How the action failed whose fallback is the next or the current action."""
        self.handled: list[FailedCall] = []
        """Actions with whose failure the run went on: forgotten if it makes the job fail after all."""
        self.spent: Amounts = {}
        self._failed_before: tuple[str, ...] = ()
        self.early = False
        """Started because the input has ended; further delayed events are dropped."""

    def begin(self, value: Any, timestamp: int | None, run_id: str = "") -> Event:
        """Starts the next input of the key, or a delayed event. `run_id` is for a key without an identity."""
        entry = self.entry
        self.sequence: int = entry.get(SEQUENCE, 0)
        # Not counted: after a crash, a delayed event may become due before or after an input that it followed the first time.
        delayed = value.event.id if value.__class__ is Delayed else ""
        if delayed:
            run_id = format_delayed_run(delayed)
        else:
            self.sequence += 1
            entry[SEQUENCE] = self.sequence
            entry.dirty = True
        self.timestamp = timestamp
        self.steps = 0
        self._ordinal = 0
        self._prefix = run_id
        if self._memory is not None:
            self._memory.new_sensory(None)
        self.failure = None
        self.handled = []
        self.spent = {}
        if value.__class__ is Delayed:
            event: Event = value.event
            self.early = value.early
        else:
            # A copy: the record may also be sent to other steps, and is read again after a crash.
            as_json = self.runtime.settings.events_as_json
            event = InputEvent(json_value(value) if as_json else copied_without_models(value))
            self.early = False
        event.id = format_event(self.run_id, 0)
        self.first = event
        return event

    @property
    def action_id(self) -> str:
        """The prefix of the ids of the current action's durable calls; of the next action's if none is current."""
        step = self.steps if self.current is not None else self.steps + 1
        return self.action_number(step)

    def action_number(self, step: int) -> str:
        return format_action(self.runtime.step.uid, self.run_id, step)

    @property
    def run_id(self) -> str:
        if not self._prefix:
            self._prefix = format_run(self.runtime.key_digest(self.key), self.sequence)
        return self._prefix

    def keep_id(self, action_id: str) -> None:
        """A stored run keeps the id with which it started, including one in the format of the first version: its calls are
        looked up by it. The key's next run has an id in the current format."""
        found = ActionId.parse(action_id)
        if found is not None:
            self._prefix = str(found.run)

    def identified(
        self, event: Event, upstream: Event, action: RunnableAction, early: set[str] | None = None
    ) -> Event:
        """The event with its id, which depends on where the event was sent, never on its contents. `early` are ids that
        were read before their events were sent."""
        # A copy, so that changes that the sender makes afterwards have no effect.
        settings = self.runtime.settings
        sent = sent_copy(event, settings.max_event_bytes, as_json=settings.events_as_json)
        # Incremented last: a rejected event takes no number, so that ids do not depend on caught errors.
        self._ordinal += 1
        given = event.__dict__.get("id")
        if early is None or given not in early:
            sent.id = format_event(self.run_id, self._ordinal)
        else:
            # If it is sent again, it is a second event with its own id.
            early.remove(given)
        sent.upstream_event_id = upstream.id
        sent.upstream_action_name = action.name
        if given is None:
            # The sender may read the id.
            event.id = sent.id
        return sent

    def take_back(self, sent: list[Event]) -> None:
        """Events of an attempt that failed: their ids are reused."""
        self._ordinal -= len(sent)

    @property
    def failures(self) -> tuple[str, ...]:
        """Actions of the key that have failed since the state in which the current action had not started."""
        return (*self._failed_before, *self.scope.work.failed.get(self.key, ()))

    def key_spent(self) -> KeySpending:
        """What the ended actions of the key have spent."""
        return self.entry.get(BUDGETS, {})

    def count_spent(self, spent: Amounts, budgets: Budgets) -> None:
        """Adds what an ended action has spent."""
        self.spent = added(self.spent, spent)
        found = budgets.spent(self.key_spent(), spent, self.scope.clock.now_ms())
        if found:
            self.entry[BUDGETS] = found
            self.entry.dirty = True

    # memory

    @property
    def memory(self) -> RunMemory:
        found = self._memory
        if found is None:
            found = self._memory = RunMemory(self.runtime.settings, self.scope, self.entry)
        return found

    @property
    def uses_memory(self) -> bool:
        """Whether an action of the run has used memory."""
        return self._memory is not None

    def keep_writes(self) -> None:
        """The action has ended: applies its memory writes."""
        if self._memory is not None:
            journal = self._memory.journal
            if journal.changes or journal.writes or journal.reads:
                journal.clear()

    def undo_writes(self) -> None:
        """The action has failed: reverts its memory writes."""
        if self._memory is not None:
            self._memory.journal.undo()

    def repeat_kept(self, writes: Sequence[Write]) -> None:
        """What the action that has failed keeps nevertheless."""
        if writes:
            for _, method, path, value in writes:
                self.memory.sensory().repeat(method, path, value)
            self.keep_writes()

    def writes(self) -> list[Write]:
        """The memory writes of the action so far."""
        return [] if self._memory is None else self._memory.journal.writes

    def reads(self) -> dict[tuple[str, str], Any]:
        """What the action has read, if that is observed."""
        return {} if self._memory is None else self._memory.journal.reads

    def now_ms(self) -> int:
        """Processing time. The clock of a micro-batch stops when the batch is over, but the action may continue."""
        clock = self.scope.clock
        if self.state is RunState.DETACHED:
            return getattr(clock, "live_ms", clock.now_ms)()
        return clock.now_ms()

    def adopt(self, sent: list[Event]) -> None:
        """Accepts events that already have ids, from another copy of this run."""
        self._ordinal += len(sent)

    def put_back(self) -> None:
        """Makes the action that was about to run the next one again."""
        assert self.current is not None
        self.tasks.appendleft(self.current)
        self.current = None
        self.steps -= 1

    # checkpoints while an action is in flight

    def save(self) -> None:
        """Stores the run in the key's entry, as it was before the action in flight started."""
        if self._memory is not None:
            self._memory.set_back()
        tasks = [self.current, *self.tasks] if self.current is not None else [*self.tasks]
        guards = self._saved_guards()
        self.entry[RUN] = (
            _WITH_GUARDS if guards else _VERSION,
            self.sequence,
            self.timestamp,
            self.steps - (1 if self.current is not None else 0),
            # Events of the action in flight are not sent yet; they will get the same ids again.
            self._ordinal - (0 if self.execution is None else len(self.execution.sent)),
            None if self._memory is None else self._memory.sensory_root,
            [(action.name, event) for action, event in tasks],
            [(value, timestamp) for value, timestamp, _, _ in self.waiting],
            *([guards] if guards else ()),
        )
        self.entry.dirty = True

    def _saved_guards(self) -> dict[str, Any]:
        """Empty for most runs."""
        found: dict[str, Any] = {
            "failure": self.failure,
            "spent": self.spent,
            "early": self.early,
            "failed": self.failures,
        }
        if any(origin for *_, origin in self.waiting):
            found["origins"] = [origin for *_, origin in self.waiting]
        if self.runtime.settings.keeps_first:
            found["first"] = self.first
        return {name: value for name, value in found.items() if value}

    def unsave(self) -> None:
        """Continues where `save` interrupted."""
        self.entry.pop(RUN, None)
        self.entry.dirty = True
        if self._memory is not None:
            self._memory.set_forth()

    def restore(self) -> list[tuple[Any, int | None, Origin | None]]:
        """Takes the run out of the key's entry; returns the inputs that were queued behind it."""
        if RUN not in self.entry:
            raise InvalidArgument(
                f"the run of key {shorten(self.key)} was stored, but cannot be found under that key",
                cause="a key that is read back must be equal to the key that was stored; one with NaN inside is not",
                way_out="return plain strings, numbers or tuples of them from the key selector",
            )
        version, *fields = self.entry.pop(RUN)
        if version not in (_VERSION, _WITH_GUARDS):
            raise ProgramChanged(
                f"an agent's run of format {version} cannot be read", way_out="update emberflow"
            )
        self.entry.dirty = True
        guards: dict[str, Any] = fields.pop() if version == _WITH_GUARDS else {}
        self.failure, self.first = guards.get("failure"), guards.get("first")
        self.spent, self.early = guards.get("spent", {}), guards.get("early", False)
        self._failed_before = guards.get("failed", ())
        self.sequence, self.timestamp, self.steps, self._ordinal, sensory, tasks, waiting = fields
        self._prefix = ""
        if sensory is not None:
            self.memory.new_sensory(sensory)
        for name, event in tasks:
            action = self.runtime.routes.actions.get(name)
            if action is None:
                raise ProgramChanged(
                    f"agent {self.runtime.plan.name!r}: the checkpoint has a run that waits in action {name!r}, "
                    "which the agent no longer has",
                    way_out="restore the action until such runs are done, or start with a new checkpoint directory",
                )
            self.tasks.append((action, event))
        origins = guards.get("origins", [None] * len(waiting))
        return [(*given, origin) for given, origin in zip(waiting, origins, strict=True)]
