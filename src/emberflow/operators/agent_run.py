"""One input's way through an agent: the tasks it set off, its memory, and the inputs of its key that wait behind it."""

from __future__ import annotations

import copy
from collections import deque
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument, NotSerializable, ProgramChanged, shorten
from emberflow.event_time.clock import Clock
from emberflow.events.agent_events import Event, InputEvent, OutputEvent
from emberflow.operators.agent_guards import Failure
from emberflow.operators.agent_routes import RunnableAction
from emberflow.operators.budgets import Amounts, Budgets, KeySpending, added
from emberflow.operators.guard_timers import Delayed
from emberflow.operators.scope import Scope
from emberflow.state.entry import Entry
from emberflow.state.memory import Change, Journal, Memory, Write, tree_size
from emberflow.state.pages import Fields
from emberflow.state.sizes import measure

if TYPE_CHECKING:
    from emberflow.operators.agent_actions import ActionRunner
    from emberflow.operators.runner_context import RunnerContext
    from emberflow.operators.watermark_holds import Segment

Task = tuple[RunnableAction, Event]

# Names in a key's entry.
SEQUENCE = "seq"
MEMORY = "memory"
STAMPS = "memory_ms"
SIZE = "memory_size"
RUN = "run"
BUDGETS = "budgets"

_VERSION = 1
_WITH_GUARDS = 2
"""The same with one more field, for a run that has something to do with guards."""


class AgentRun:
    """Belongs to one key from its first input until nothing of the key is in flight any more."""

    __slots__ = (
        "_ordinal",
        "_prefix",
        "_sensory",
        "_sensory_root",
        "_short_term",
        "agent",
        "context",
        "current",
        "detached",
        "dormant",
        "early",
        "entry",
        "failure",
        "first",
        "journal",
        "key",
        "marks",
        "scope",
        "segment",
        "sequence",
        "spent",
        "steps",
        "tasks",
        "timestamp",
        "undone",
        "waiting",
    )

    def __init__(self, agent: ActionRunner, scope: Scope, key: Any, entry: Entry) -> None:
        self.agent = agent
        self.scope = scope
        self.key = key
        self.entry = entry
        self.journal = Journal()
        self.tasks: deque[Task] = deque()
        self.waiting: deque[tuple[Any, int | None, Segment]] = deque()
        self.current: Task | None = None
        self.context: RunnerContext | None = None
        """Of the action that waits."""
        self.segment: Segment | None = None
        self.detached = False
        """Nobody waits for the action any more: its key goes on from what it leaves in the log."""
        self.dormant = False
        """Its action goes on elsewhere; this is only what is stored of it."""
        self.undone: list[Change] | None = None
        self.marks: Any = None
        """What memory has to write, while a checkpoint is written without it."""
        self._short_term: Memory | None = None
        self.first: Event | None = None
        """What began the run."""
        self.failure: Failure | None = None
        """How the action failed whose fallback is the next, or the current, one."""
        self.spent: Amounts = {}
        self.early = False
        """Begun because the input has ended; nothing is sent for later any more."""

    def begin(self, value: Any, timestamp: int | None) -> Event:
        """The next input of the key, or a delayed event."""
        entry = self.entry
        self.sequence: int = entry.get(SEQUENCE, 0) + 1
        entry[SEQUENCE] = self.sequence
        entry.dirty = True
        self.timestamp = timestamp
        self.steps = 0
        self._ordinal = 0
        self._prefix = ""
        self._sensory: Memory | None = None
        self._sensory_root: Fields | None = None
        self.failure = None
        self.spent = {}
        if value.__class__ is Delayed:
            event: Event = value.event
            self.early = value.early
        else:
            event = InputEvent(value)
            self.early = False
        event.id = f"{self.run_id}.0"
        self.first = event
        return event

    @property
    def action_id(self) -> str:
        """What the ids of the current action's durable calls begin with; of the next one's while none is current."""
        step = self.steps if self.current is not None else self.steps + 1
        return self.action_number(step)

    def action_number(self, step: int) -> str:
        return f"{self.agent.step.uid}/{self.run_id}/{step}/"

    @property
    def run_id(self) -> str:
        if not self._prefix:
            self._prefix = f"{self.agent.key_digest(self.key)}-{self.sequence}"
        return self._prefix

    def identified(self, event: Event, upstream: Event, action: RunnableAction) -> Event:
        """The event as it will be known: ids come from where it was sent, never from what it holds."""
        self.check_event(event)
        if event.id:
            # Sent once more: a second occurrence, with an id of its own.
            event = copy.copy(event)
        # Counted last: an event that is refused takes no number, so that ids do not depend on what was caught.
        self._ordinal += 1
        event.id = f"{self.run_id}.{self._ordinal}"
        event.upstream_event_id = upstream.id
        event.upstream_action_name = action.name
        return event

    def take_back(self, sent: list[Event]) -> None:
        """Events of an attempt that failed: their ids are given again."""
        self._ordinal -= len(sent)

    def key_spent(self) -> KeySpending:
        """What the key has spent by actions that have ended."""
        return self.entry.get(BUDGETS, {})

    def count_spent(self, spent: Amounts, budgets: Budgets) -> None:
        """An action has ended that spent this."""
        self.spent = added(self.spent, spent)
        found = budgets.spent(self.key_spent(), spent, self.scope.clock.now_ms())
        if found:
            self.entry[BUDGETS] = found
            self.entry.dirty = True

    def check_event(self, event: Event) -> None:
        """Raises for what cannot be sent."""
        if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(
                f"{shorten(event)} is not an event",
                way_out="send_event() takes an Event, e.g. OutputEvent(output)",
            )
        try:
            # All that the event holds; its attributes alone would have to be collected first.
            size = measure(event.__dict__)
        except NotSerializable as error:
            raise NotSerializable(
                f"the event {shorten(event)} cannot be serialised",
                cause=error.cause,
                way_out="send data, not locks, connections, files or generators",
            ) from error
        if size > self.agent.max_event_bytes:
            raise NotSerializable(
                f"the event {event.type!r} has {size:,} bytes; the limit is {self.agent.max_event_bytes:,}",
                way_out="keep large data in a file or store and send its address, or raise 'max-event-bytes'",
            )
        if event.type == OutputEvent.EVENT_TYPE and "output" not in event.attributes:
            raise InvalidArgument("the output event has no output", way_out="send OutputEvent(output)")

    # memory

    def read_pages(self) -> None:
        """Reads all of the key's memory now: an action that waits may ask for it when the store cannot answer."""
        memory: Fields | None = self.entry.get(MEMORY)
        if memory is not None and memory.unread:
            memory.store = self.scope.pages
            memory.load_all()

    def short_term(self) -> Memory:
        found = self._short_term
        if found is None:
            found = self._short_term = self._open_short_term()
        return found

    def _open_short_term(self) -> Memory:
        entry, agent = self.entry, self.agent
        root: Fields | None = entry.get(MEMORY)
        if root is None:
            root = Fields()
        root.store = self.scope.pages
        stamps = None
        if agent.ttl_ms:
            stamps = entry.setdefault(STAMPS, {})

        def changed() -> None:
            entry[MEMORY] = root
            entry.dirty = True

        clock: Clock = self.scope.clock
        return Memory(
            "short-term", root, self.journal, agent.max_memory_bytes, entry.setdefault(SIZE, {}), changed,
            ttl_ms=agent.ttl_ms, refresh_on_read=agent.refresh_on_read, stamps=stamps, clock=clock,
        )  # fmt: skip

    def sensory(self) -> Memory:
        found = self._sensory
        if found is None:
            root = Fields() if self._sensory_root is None else self._sensory_root
            self._sensory_root = root
            totals = {"bytes": tree_size(root)}
            found = Memory("sensory", root, self.journal, self.agent.max_memory_bytes, totals)
            self._sensory = found
        return found

    def repeat(self, writes: list[Write]) -> None:
        """What an action wrote into a copy of this memory."""
        for kind, method, path, value in writes:
            memory = self.sensory() if kind == "sensory" else self.short_term()
            memory.repeat(method, path, value)

    def adopt(self, sent: list[Event]) -> None:
        """Events that were identified by another copy of this run."""
        self._ordinal += len(sent)

    def put_back(self) -> None:
        """The action that was about to run is the next one to run."""
        assert self.current is not None
        self.tasks.appendleft(self.current)
        self.current = None
        self.steps -= 1

    # checkpoints while an action waits

    def save(self) -> None:
        """Puts the run into the key's entry, as it was before the waiting action began."""
        memory: Fields | None = self.entry.get(MEMORY)
        if memory is not None:
            self.marks = memory.marks()
        self.undone = self.journal.suspend()
        tasks = [self.current, *self.tasks] if self.current is not None else [*self.tasks]
        guards = self._saved_guards()
        self.entry[RUN] = (
            _WITH_GUARDS if guards else _VERSION,
            self.sequence,
            self.timestamp,
            self.steps - (1 if self.current is not None else 0),
            # What the waiting action has sent so far is not sent yet; it will get the same ids again.
            self._ordinal - (0 if self.context is None else len(self.context.sent)),
            self._sensory_root,
            [(action.name, event) for action, event in tasks],
            [(value, timestamp) for value, timestamp, _ in self.waiting],
            *([guards] if guards else ()),
        )
        self.entry.dirty = True

    def _saved_guards(self) -> dict[str, Any]:
        """Empty for most runs."""
        found: dict[str, Any] = {"failure": self.failure, "spent": self.spent, "early": self.early}
        if self.agent.keeps_first:
            found["first"] = self.first
        return {name: value for name, value in found.items() if value}

    def unsave(self) -> None:
        """Goes on where `save` interrupted."""
        self.entry.pop(RUN, None)
        self.entry.dirty = True
        if self.undone is not None:
            self.journal.proceed(self.undone)
            self.undone = None
        if self.marks is not None:
            self.entry[MEMORY].mark_again(self.marks)
            self.marks = None

    def restore(self) -> list[tuple[Any, int | None]]:
        """Takes the run out of the key's entry; returns the inputs that waited behind it."""
        if RUN not in self.entry:
            raise InvalidArgument(
                f"the run of key {shorten(self.key)} was stored, but is not found again under that key",
                cause="a key that is read back must be equal to the key that was stored; one with NaN inside is not",
                way_out="let the key selector return plain texts, numbers or tuples of them",
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
        self.sequence, self.timestamp, self.steps, self._ordinal, self._sensory_root, tasks, waiting = fields
        self._prefix = ""
        self._sensory = None
        for name, event in tasks:
            action = self.agent.routes.actions.get(name)
            if action is None:
                raise ProgramChanged(
                    f"agent {self.agent.plan.name!r}: the checkpoint has a run that waits in action {name!r}, "
                    "which the agent no longer has",
                    way_out="bring the action back until such runs are done, or start with a new checkpoint directory",
                )
            self.tasks.append((action, event))
        return waiting
