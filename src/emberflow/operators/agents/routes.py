"""Which actions an event triggers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from emberflow.errors import describe_cause
from emberflow.events.agent_events import ErrorEvent, Event, InputEvent, OutputEvent
from emberflow.events.memory_events import MEMORY_EVENTS, AgentRunBeginEvent
from emberflow.plan.agents.agent_plan import Action, AgentPlan, Trigger
from emberflow.plan.agents.options import AgentConfigOptions, ConditionEvaluationFailureStrategy

_log = logging.getLogger("emberflow.agents")


_OUTPUT = OutputEvent.EVENT_TYPE
_NOTHING: list[Any] = []
_OBSERVED = frozenset({*MEMORY_EVENTS, AgentRunBeginEvent.EVENT_TYPE})
_BUILT_IN = _OBSERVED | {InputEvent.EVENT_TYPE, OutputEvent.EVENT_TYPE, ErrorEvent.EVENT_TYPE}


class RunnableAction:
    """An action with what the operator needs to run it."""

    __slots__ = (
        "_restricted",
        "awaits",
        "config",
        "convert",
        "function",
        "guards",
        "is_async",
        "keeps_event",
        "matches",
        "name",
        "types",
    )

    def __init__(self, action: Action, max_steps: int) -> None:
        self.name = action.name
        self.function = action.function
        """As the user wrote it; `awaits` says whether it is a coroutine function."""
        self.awaits = action.is_async
        self.guards = action.guards
        self.is_async = action.may_wait
        self.config = action.config
        self.types = frozenset(trigger.type for trigger in action.triggers if trigger.type)
        self.matches = [
            _matcher(action, trigger, max_steps) for trigger in action.triggers if not trigger.type
        ]
        self._restricted = _restricted_types(action)
        self.convert = action.event_class
        self.keeps_event = self.guards.fallback is not None
        """Whether the event is needed after the action has received it."""

    def may_match(self, event_type: str) -> bool:
        """Whether an event of this type may trigger the action; its conditions may look at any event."""
        return self._restricted is None or event_type in self._restricted

    def given(self, event: Event) -> Event:
        """The event in the form that the action expects."""
        if self.convert is None or isinstance(event, self.convert):
            return event
        return self.convert.from_event(event)


def _matcher(action: Action, trigger: Trigger, max_steps: int) -> tuple[Callable[[Event], bool], str]:
    if trigger.predicate is not None:
        return trigger.predicate, str(trigger)
    from emberflow.plan.cel.expression import CelExpression

    expression = CelExpression(trigger.expression, f"action {action.name!r}", max_steps)
    return expression.matches, trigger.expression


def _restricted_types(action: Action) -> frozenset[str] | None:
    """The event types that may trigger an action; None for any."""
    from emberflow.plan.cel.expression import CelExpression

    found: set[str] = set()
    for trigger in action.triggers:
        types = [trigger.type] if trigger.type else None
        if trigger.expression:
            types = CelExpression(trigger.expression, "").types()
        if types is None:
            return None
        found.update(types)
    return frozenset(found)


def _names_errors(action: Action) -> bool:
    """Whether an action is meant for error events. One triggered by any event is not: errors must not vanish in it."""
    from emberflow.plan.cel.expression import CelExpression

    wanted = ErrorEvent.EVENT_TYPE
    return any(
        trigger.type == wanted
        or (trigger.expression and wanted in (CelExpression(trigger.expression, "").types() or ()))
        for trigger in action.triggers
    )


class ConditionRaised(Exception):
    """A trigger condition could not be evaluated."""

    def __init__(self, action: str, condition: str, error: BaseException) -> None:
        super().__init__(
            f"the trigger condition {condition!r} of action {action!r} failed: {describe_cause(error)}"
        )


class Routes:
    """Actions are returned in the order in which the agent defines them, each at most once per event."""

    def __init__(self, plan: AgentPlan) -> None:
        max_steps = plan.config.get(AgentConfigOptions.CONDITION_MAX_STEPS)
        self.actions = {name: RunnableAction(item, max_steps) for name, item in plan.actions.items()}
        self._ordered = list(self.actions.values())
        self._agent = plan.name
        self._conditional = any(item.matches for item in self._ordered)
        self.handles_errors = any(_names_errors(item) for item in plan.actions.values())
        self.goes_on_after_failures = self.handles_errors or any(
            item.guards.fallback is not None for item in plan.actions.values()
        )
        """Whether a run may continue although one of its actions has failed."""
        strategy = plan.config.get(AgentConfigOptions.CONDITION_EVALUATION_FAILURE_STRATEGY)
        self._fail = strategy is ConditionEvaluationFailureStrategy.FAIL
        self._warned: set[tuple[str, str]] = set()
        self._by_type: dict[str, list[RunnableAction]] = {_OUTPUT: _NOTHING}

    def triggered_by(self, event: Event) -> list[RunnableAction]:
        """Nothing for an output: it goes downstream, and an action that took any event would answer itself forever."""
        if self._conditional:
            if event.type == _OUTPUT:
                return _NOTHING
            return [item for item in self._ordered if event.type in item.types or self._holds(item, event)]
        found = self._by_type.get(event.type)
        if found is None:
            found = self._by_type[event.type] = [item for item in self._ordered if event.type in item.types]
        return found

    def may_trigger(self, event_type: str) -> bool:
        """Whether an event of this type may trigger an action."""
        return any(item.may_match(event_type) for item in self._ordered)

    def _holds(self, action: RunnableAction, event: Event) -> bool:
        for matches, shown in action.matches:
            try:
                if matches(event):
                    return True
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if self._fail and event.type not in _OBSERVED:
                    # An event that only reports must not fail the run that it reports on.
                    raise ConditionRaised(action.name, shown, error) from error
                self._warn(action, shown, event, error)
        return False

    def _warn(self, action: RunnableAction, condition: str, event: Event, error: Any) -> None:
        """Warns once per condition and event type, and never about built-in events: it is normal that a condition uses an
        attribute that other events lack."""
        if event.type in _BUILT_IN or (condition, event.type) in self._warned:
            return
        self._warned.add((condition, event.type))
        _log.warning(
            "agent %r, action %r: the condition %r cannot be evaluated for events of type %r and counts as false: %s",
            self._agent, action.name, condition, event.type, describe_cause(error),
        )  # fmt: skip
