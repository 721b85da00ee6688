"""Ids of an agent's runs, actions and durable calls: what they consist of, how they are formatted and parsed.

    run      <identity of the key>-<sequence number of the key's input>
             of a delayed event <identity of that event>-1: it may come before or after an input when it is repeated
    delayed  <run>.<number of the action that sent it>.after<number within the action>
    event    <run>.<ordinal within the run>; <run>.<action>.<number within the action> if its id was read before it was sent
             <run>.<action>.<kind> for memory events, <run>.begin for the beginning of a run
    action   <step>/<run>/<number within the run>/
    call     <action><number within the action>; within a branch, followed by .<number within the branch> and so on
    sub-run  <run>~<number of the action>.<its number within the action>
    outcome  <action>end
    failure  <action>0; of an action of a sub-agent <action><numbers of the sub-agent's action>.0

Ids are stored and sent as strings: in state, the call log, events and approvals. No other module knows their format.
The functions format parts that the caller already has as strings, without creating an object for each id.
"""

from __future__ import annotations

from typing import NamedTuple

from emberflow.events.identity import text_identity

_OUTCOME = "end"
_SUB_RUN = "~"


class RunId(NamedTuple):
    """One input of a key on its way through an agent."""

    key: str
    """The identity of the key."""
    sequence: int
    """Counts the inputs of the key."""

    def __str__(self) -> str:
        return format_run(self.key, self.sequence)


class ActionId(NamedTuple):
    """One action of a run."""

    step: str
    """The uid of the agent's step."""
    run: RunId
    number: int
    """Counts the actions of the run."""

    def __str__(self) -> str:
        return format_action(self.step, str(self.run), self.number)

    @staticmethod
    def parse(text: str) -> ActionId | None:
        """None for a string that is not the id of an action."""
        try:
            # From the right: the uid of a step may contain slashes, the identity of a key hyphens.
            step, run, number, rest = text.rsplit("/", 3)
            key, sequence = run.rsplit("-", 1)
            return None if rest else ActionId(step, RunId(key, int(sequence)), int(number))
        except ValueError:
            return None


class CallId(NamedTuple):
    """One durable call of an action, its failure (the number 0), or the outcome of the action as a whole."""

    action: str
    """The formatted id of the action: calls are looked up by it."""
    number: int | None
    """None for the outcome."""
    parts: tuple[int, ...] = ()
    """The position within a branch (several calls in a fixed order that share one number of the action), within a branch
    of that branch, and so on; without ones at the end."""

    def __str__(self) -> str:
        if self.number is None:
            return format_outcome(self.action)
        return format_call(self.action, self.number, *self.parts)

    @property
    def path(self) -> tuple[int, ...]:
        """The numbers of a call."""
        return () if self.number is None else (self.number, *self.parts)

    @staticmethod
    def parse(text: str) -> CallId | None:
        """None for a string that is not the id of a call."""
        action = action_of(text)
        number = text[len(action) :]
        if number == _OUTCOME:
            return CallId(action, None)
        first, *parts = number.split(".")
        if not first.isdecimal() or not all(map(str.isdecimal, parts)) or (parts and int(parts[-1]) == 1):
            return None
        return CallId(action, int(first), tuple(map(int, parts)))


def format_run(key: str, sequence: int) -> str:
    return f"{key}-{sequence}"


def format_event(run: str, ordinal: int) -> str:
    return f"{run}.{ordinal}"


def format_early_event(run: str, action: int, number: int) -> str:
    return f"{run}.{action}.{number}"


def format_memory_event(run: str, action: int, kind: str) -> str:
    """An action has at most one memory event of a kind; other events keep their ids, whether there are any or not."""
    return f"{run}.{action}.{kind.strip('_')}"


def format_delayed(run: str, action: int, number: int) -> str:
    """The identity of a delayed event until it starts a run of its own."""
    return f"{run}.{action}.after{number}"


def format_delayed_run(delayed: str) -> str:
    return format_run(text_identity(delayed), 1)


def format_begin_event(run: str) -> str:
    return f"{run}.begin"


def format_action(step: str, run: str, number: int) -> str:
    return f"{step}/{run}/{number}/"


def format_call(action: str, number: int, *parts: int) -> str:
    # The first call of a branch has the id of a call without a branch.
    end = len(parts)
    while end and parts[end - 1] == 1:
        end -= 1
    return f"{action}{number}" + "".join([f".{part}" for part in parts[:end]])


def format_sub_run(run: str, number: int, path: tuple[int, ...]) -> str:
    """A call of an agent within an action of a run: its number, and the numbers of the call."""
    return f"{run}{_SUB_RUN}{number}.{'.'.join(map(str, path))}"


def run_of(run: str) -> str:
    """The run that a run is part of: itself, or the one in which an agent was called."""
    return run.partition(_SUB_RUN)[0]


def format_outcome(action: str) -> str:
    """Where the outcome of an action is found: next to its calls."""
    return f"{action}{_OUTCOME}"


def format_failure(action: str, path: tuple[int, ...]) -> str:
    """Where a handled failure of an action is found; `path` is that of an action of a sub-agent."""
    return format_call(action, *path, 0)


def action_of(call: str) -> str:
    """The id of the action that a call, or an outcome, belongs to."""
    return call[: call.rfind("/") + 1]
