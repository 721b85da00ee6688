"""Ids of an agent's runs, actions and durable calls: what they consist of, how they are formatted and parsed.

    run      <identity of the key>-<sequence number of the key's input>
    event    <run>.<ordinal within the run>
    action   <step>/<run>/<number within the run>/
    call     <action><number within the action>
    outcome  <action>end

Ids are stored and sent as strings: in state, the call log, events and approvals. No other module knows their format.
The functions format parts that the caller already has as strings, without creating an object for each id.
"""

from __future__ import annotations

from typing import NamedTuple

_OUTCOME = "end"


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
    """One durable call of an action, or the outcome of the action as a whole."""

    action: str
    """The formatted id of the action: calls are looked up by it."""
    number: int | None
    """None for the outcome."""

    def __str__(self) -> str:
        return format_outcome(self.action) if self.number is None else format_call(self.action, self.number)

    @staticmethod
    def parse(text: str) -> CallId | None:
        """None for a string that is not the id of a call."""
        action = action_of(text)
        number = text[len(action) :]
        if number == _OUTCOME:
            return CallId(action, None)
        return CallId(action, int(number)) if number.isdecimal() else None


def format_run(key: str, sequence: int) -> str:
    return f"{key}-{sequence}"


def format_event(run: str, ordinal: int) -> str:
    return f"{run}.{ordinal}"


def format_action(step: str, run: str, number: int) -> str:
    return f"{step}/{run}/{number}/"


def format_call(action: str, number: int) -> str:
    return f"{action}{number}"


def format_outcome(action: str) -> str:
    """Where the outcome of an action is found: next to its calls."""
    return f"{action}{_OUTCOME}"


def action_of(call: str) -> str:
    """The id of the action that a call, or an outcome, belongs to."""
    return call[: call.rfind("/") + 1]
