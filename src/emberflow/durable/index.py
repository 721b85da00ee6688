"""The contents of a call log in memory: which calls are answered, which actions run, are parked or are done.

An answer is dropped when its action is *done* in an attempt at an epoch that was committed, not when the epoch in which it
was written is committed: after a crash, an epoch may be committed before the repeated work has caught up with the lost
work, so answers recorded further ahead are still needed. The actions of a key run one after another, so an action that is
done supersedes all earlier ones.

Records of several processes are read in any order; where the order matters, epoch and attempt decide.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from emberflow.durable.claims import Claims
from emberflow.durable.records import (
    Began,
    Call,
    Claimed,
    Done,
    Due,
    Ended,
    Forgotten,
    Parked,
    Record,
    Runs,
    fencing_epoch_of,
)
from emberflow.events.run_ids import ActionId, action_of
from emberflow.operators.agents.calls.durable_calls import CallRecord

_KEPT_EPOCHS = 20
"""For how many epochs a done action is remembered: a process that was idle in the meantime must learn of it too."""

_Key = tuple[str, str]
"""Step and key: the actions of one key run one after another."""


class CallIndex:
    def __init__(self) -> None:
        self.calls: dict[str, CallRecord] = {}
        self.claims = Claims()
        self.due: dict[str, int | None] = {}
        self._due_in: dict[str, tuple[int, int]] = {}
        self._writer_of: dict[str, str] = {}
        self._mark_of: dict[str, str] = {}
        self._forgotten: dict[str, set[str]] = {}
        """action -> marks of records that no longer count, whenever they are read"""
        self._calls_of: dict[str, list[str]] = {}
        self._actions_of: dict[_Key, set[str]] = {}
        self._fences: dict[str, int] = {}
        self._parked: dict[str, tuple[int, int]] = {}
        self._behind: dict[str, int] = {}
        self._parked_of: dict[_Key, set[str]] = {}
        self._done: dict[str, tuple[int, int, str]] = {}
        self._settled: dict[str, tuple[int, int, str]] = {}
        self._attempts: dict[tuple[int, str], int] = {}

    def apply(self, owner: str, record: Record) -> None:
        """Applies a record written by the process `owner`."""
        match record:
            case Call():
                self._add_call(owner, record.call, record.mark)
            case Claimed():
                self._note_fence(owner, record.fencing_epoch)
                self.claims.add(record.action, owner)
            case Ended():
                self.claims.remove(record.action, owner)
            case Done():
                self._add_done(record)
            case Began():
                at = record.epoch, record.place
                self._attempts[at] = max(record.attempt, self._attempts.get(at, -1))
            case Parked():
                self._add_parked(record)
            case Forgotten():
                self._forget(record)
            case Due():
                self._add_due(record)
            case Runs():
                # A rewritten part: the record of an action's end may have been left out.
                self._note_fence(owner, record.fencing_epoch)
                self.claims.replace(owner, record.actions)

    def _add_done(self, record: Done) -> None:
        if (record.epoch, record.attempt) >= self._done.get(record.action, (-1, -1, ""))[:2]:
            self._done[record.action] = record.epoch, record.attempt, record.place

    def _add_parked(self, record: Parked) -> None:
        at = record.epoch, record.attempt
        for action, behind in record.actions.items():
            if at >= self._parked.get(action, (-1, -1)):
                self._parked[action] = at
                self._behind[action] = behind
                self._parked_of.setdefault(_place_of(action).key, set()).add(action)

    def _forget(self, record: Forgotten) -> None:
        self._forgotten.setdefault(record.action, set()).add(record.mark)
        for call_id in [*self._calls_of.get(record.action, ())]:
            if self._mark_of[call_id] == record.mark:
                self._remove_call(call_id)

    def _add_due(self, record: Due) -> None:
        at = record.epoch, record.attempt
        if at >= self._due_in.get(record.name, (-1, -1)):
            self._due_in[record.name] = at
            self.due[record.name] = record.at_ms

    def fence_of(self, owner: str) -> int:
        """The fencing epoch of the start in which the process last claimed an action."""
        return self._fences.get(owner, 0)

    def _note_fence(self, owner: str, fencing_epoch: int | None) -> None:
        if fencing_epoch is not None:
            self._fences[owner] = fencing_epoch

    def is_known(self, action: str) -> bool:
        """Whether there is anything to drop when the action is done."""
        return action in self._calls_of or action in self._parked or action in self._forgotten

    def last_behind(self, action: str) -> str | None:
        """The last known action of the same run after this one."""
        key, order = _place_of(action)
        known = self._actions_of.get(key, set[str]()) | self._parked_of.get(key, set[str]())
        behind = [item for item in known if order < _place_of(item).order < (order[0] + 1, 0)]
        return max(behind, key=lambda item: _place_of(item).order, default=None)

    def mark_of(self, call_id: str) -> str:
        return self._mark_of[call_id]

    # parked actions

    def parked(self) -> list[str]:
        """Actions that have started and are parked in state."""
        return [action for action, at in self._parked.items() if self._done.get(action, (-1, -1))[:2] <= at]

    def parked_in(self, action: str) -> tuple[int, int] | None:
        """The epoch and attempt in which the action was last parked."""
        return self._parked.get(action)

    def held_inputs(self) -> Counter[str]:
        """step -> number of unfinished inputs held in state."""
        held: Counter[str] = Counter()
        for action in self.parked():
            held[_place_of(action).key[0]] += 1 + self._behind.get(action, 0)
        return held

    # dropping and keeping records

    def latest_epoch(self) -> int:
        """The last epoch that any process has started: earlier ones are committed."""
        return max((epoch for epoch, _ in self._attempts), default=-1)

    def settle(self, epoch: int) -> None:
        """Epochs before this one are committed: drops what was done in them."""
        for action, mark in [*self._done.items()]:
            at, attempt, place = mark
            if at >= epoch:
                continue
            del self._done[action]
            if attempt == self._attempts.get((at, place), attempt):
                self._settled[action] = mark
                self._drop_up_to(action)
        for action in [action for action, mark in self._settled.items() if mark[0] < epoch - _KEPT_EPOCHS]:
            del self._settled[action]
        for key in [key for key in self._attempts if key[0] < epoch - _KEPT_EPOCHS]:
            del self._attempts[key]

    def _drop_up_to(self, action: str) -> None:
        self._forgotten.pop(action, None)
        key, order = _place_of(action)
        for other in [*self._actions_of.get(key, ())]:
            if _place_of(other).order <= order:
                for call_id in [*self._calls_of.get(other, ())]:
                    self._remove_call(call_id)
        at = self._settled[action][:2]
        for other in [*self._parked_of.get(key, ())]:
            # The record that an earlier action was done may have been lost with its process.
            if _place_of(other).order < order or (other == action and at > self._parked[other]):
                self._unpark(key, other)

    def _unpark(self, key: _Key, action: str) -> None:
        del self._parked[action]
        self._behind.pop(action, None)
        self._parked_of[key].discard(action)
        if not self._parked_of[key]:
            del self._parked_of[key]

    def take_over(self, dead: Iterable[str], by: str) -> None:
        """Makes this process the owner of what processes that have ended wrote."""
        gone = set(dead)
        for call_id in [call_id for call_id, owner in self._writer_of.items() if owner in gone]:
            self._writer_of[call_id] = by
        for owner in gone:
            self.claims.drop(owner)
            self._fences.pop(owner, None)

    def records(self, owner: str) -> Iterator[Record]:
        """All records that a part must contain so that nothing this process knows is lost."""
        for (epoch, place), attempt in self._attempts.items():
            yield Began(epoch, place, attempt)
        for action, (epoch, attempt) in self._parked.items():
            yield Parked(epoch, attempt, {action: self._behind.get(action, 0)})
        for marks in (self._settled, self._done):
            for action, (epoch, attempt, place) in marks.items():
                yield Done(epoch, place, attempt, action)
        for name, at_ms in self.due.items():
            yield Due(name, at_ms, *self._due_in[name])
        for action, marks in self._forgotten.items():
            for mark in marks:
                yield Forgotten(action, mark)
        for call_id, writer in self._writer_of.items():
            if writer == owner:
                yield Call(self.calls[call_id], self._mark_of[call_id])
        # Written last: the outcomes of actions that it no longer lists precede it.
        yield Runs(self.claims.of(owner), self.fence_of(owner))

    def _add_call(self, owner: str, call: CallRecord, mark: str) -> None:
        action = action_of(call.call_id)
        if mark in self._forgotten.get(action, ()):
            return
        known = self._mark_of.get(call.call_id)
        if known is not None and fencing_epoch_of(known) > fencing_epoch_of(mark):
            # Written by a process that was replaced: keep the answer that the later start has used.
            return
        if call.call_id not in self.calls:
            self._calls_of.setdefault(action, []).append(call.call_id)
            self._actions_of.setdefault(_place_of(action).key, set()).add(action)
        self.calls[call.call_id] = call
        self._writer_of[call.call_id] = owner
        self._mark_of[call.call_id] = mark

    def _remove_call(self, call_id: str) -> None:
        if self.calls.pop(call_id, None) is None:
            return
        del self._writer_of[call_id]
        del self._mark_of[call_id]
        action = action_of(call_id)
        rest = self._calls_of[action]
        rest.remove(call_id)
        if not rest:
            del self._calls_of[action]
            key = _place_of(action).key
            actions = self._actions_of[key]
            actions.discard(action)
            if not actions:
                del self._actions_of[key]


class _Place(NamedTuple):
    key: _Key
    order: tuple[int, int]
    """The position of the action among those of its key."""


@functools.lru_cache(maxsize=4096)
def _place_of(action: str) -> _Place:
    """Cached: an action that is done is looked up several times in a row."""
    found = ActionId.parse(action)
    if found is None:
        # An id of another form: treat it as the only action of its own key.
        return _Place(("", action), (0, 0))
    return _Place((found.step, found.run.key), (found.run.sequence, found.number))
