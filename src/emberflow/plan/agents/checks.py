"""Checks on an agent when its plan is compiled.

What cannot work is an error. What is probably a mistake is a warning, and only reported if the code leaves no doubt: a
correct agent never gets one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING

from emberflow.errors import InvalidAgent
from emberflow.events.agent_events import Event, EventType, InputEvent, OutputEvent, fields_of
from emberflow.plan.agents.action_code import Code, full_name, look_into
from emberflow.plan.agents.memory_kinds import why_not_sent
from emberflow.plan.agents.options import all_options, is_type_level, option_named
from emberflow.plan.cel.expression import CelExpression

if TYPE_CHECKING:
    from emberflow.plan.agents.agent_plan import Action, AgentPlan, Trigger

BUILT_IN = {str(value) for name, value in vars(EventType).items() if not name.startswith("_")}


@dataclass(slots=True)
class _Known:
    """What is known about the events of the whole agent."""

    code: dict[str, Code]
    expressions: dict[str, CelExpression]
    classes: dict[str, type[Event]] = field(default_factory=dict[str, type[Event]])
    """By event type."""

    @property
    def sendable(self) -> set[str]:
        """Every type that something in the agent could send."""
        mentioned = {kind.EVENT_TYPE for code in self.code.values() for kind in code.classes.values()}
        return mentioned.union(*(code.strings | code.sends.keys() for code in self.code.values()))

    @property
    def unknown(self) -> bool:
        return any(code.unknown for code in self.code.values())

    @property
    def plain_events(self) -> bool:
        return any(code.plain_events for code in self.code.values())

    def may_be_plain(self, event_type: str) -> bool:
        """Whether `Event(type=…)` may be sent instead of the class; such events carry any attributes."""
        return self.plain_events and any(event_type in code.strings for code in self.code.values())


def check(plan: AgentPlan) -> list[str]:
    """Raises InvalidAgent for what cannot work; returns warnings about probable mistakes."""
    if not plan.actions:
        raise InvalidAgent(
            f"agent {plan.name!r} has no actions",
            way_out="mark methods with @action(InputEvent), or use add_action()",
        )
    warnings = _check_settings(plan)
    known = _known(plan)
    for action in plan.actions.values():
        _check_annotation(plan, action, known)
    warnings += _check_triggers(plan, known)
    for name in plan.actions:
        warnings += _check_sends(plan, name, known)
    return list(dict.fromkeys(warnings))


def check_conditions(plan: AgentPlan) -> None:
    """The part of `check` that depends on actions only: raises InvalidAgent for a trigger condition that cannot work."""
    _check_triggers(plan, _known(plan))


def _known(plan: AgentPlan) -> _Known:
    known = _Known(
        {name: look_into(action.function) for name, action in plan.actions.items()}, expressions_of(plan)
    )
    known.classes = _classes(plan, known.code.values())
    return known


def _check_triggers(plan: AgentPlan, known: _Known) -> list[str]:
    warnings: list[str] = []
    for action in plan.actions.values():
        for trigger in action.triggers:
            warnings += _check_types(plan, action, trigger, known)
            warnings += _check_attributes(plan, action, trigger, known)
    _check_input(plan, known)
    return warnings


def expressions_of(plan: AgentPlan) -> dict[str, CelExpression]:
    """The plan's expressions, parsed, by their source; raises InvalidAgent."""
    return {
        trigger.expression: CelExpression(trigger.expression, _where(plan, action, trigger))
        for action in plan.actions.values()
        for trigger in action.triggers
        if trigger.expression
    }


def types_of(trigger: Trigger, expressions: dict[str, CelExpression]) -> frozenset[str] | None:
    """The event types a trigger can match; None for any."""
    if trigger.type:
        return frozenset([trigger.type])
    return expressions[trigger.expression].types() if trigger.expression else None


def handlers_of(event_type: str, plan: AgentPlan, expressions: dict[str, CelExpression]) -> list[str]:
    """The actions that an event of this type may trigger; an output triggers none."""
    if event_type == OutputEvent.EVENT_TYPE:
        return []
    return [
        action.name
        for action in plan.actions.values()
        if any(
            (types := types_of(trigger, expressions)) is None or event_type in types
            for trigger in action.triggers
        )
    ]


def _where(plan: AgentPlan, action: Action, trigger: Trigger | None = None) -> str:
    return f"{'' if trigger is None else _place(trigger)}agent {plan.name!r}, action {action.name!r}"


def _place(trigger: Trigger) -> str:
    return f"{trigger.written.place}: " if trigger.written.place else ""


def _classes(plan: AgentPlan, code: Iterable[Code]) -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {}
    mentioned = [kind for item in code for kind in item.classes.values()]
    for action in plan.actions.values():
        mentioned += [kind for trigger in action.triggers if (kind := trigger.event_class)]
        mentioned += [action.event_class] if action.event_class else []
    for kind in [InputEvent, OutputEvent, *mentioned]:
        other = found.setdefault(kind.EVENT_TYPE, kind)
        # Running a notebook cell again creates the same class once more.
        if full_name(other) != full_name(kind):
            raise InvalidAgent(
                f"agent {plan.name!r} uses two event classes of the type {kind.EVENT_TYPE!r}",
                cause=f"they are {full_name(other)} and {full_name(kind)}",
                way_out="rename one, or give it its own type: EVENT_TYPE: ClassVar[str] = '…'",
            )
    return found


def _check_input(plan: AgentPlan, known: _Known) -> None:
    if not handlers_of(InputEvent.EVENT_TYPE, plan, known.expressions):
        place = next((_place(item) for action in plan.actions.values() for item in action.triggers), "")
        raise InvalidAgent(
            f"{place}agent {plan.name!r} does nothing: no action is triggered by its input",
            cause="; ".join(
                f"{action.name!r} waits for {' or '.join(map(str, action.triggers))}"
                for action in plan.actions.values()
            ),
            way_out="trigger the first action by the input: trigger_conditions: [input]"
            if place
            else "mark the first action with @action(InputEvent)",
        )


def _check_annotation(plan: AgentPlan, action: Action, known: _Known) -> None:
    """`def act(event: Scored, ctx)` receives a Scored built from the event, which must have the attributes it needs."""
    wanted = action.event_class
    if wanted is None or not is_dataclass(wanted):
        return
    needed = {
        item.name for item in fields(wanted) if item.default is MISSING and item.default_factory is MISSING
    }
    for trigger in action.triggers:
        came = known.classes.get(trigger.type)
        given = None if came is None else fields_of(came)
        if came is None or given is None or known.may_be_plain(came.EVENT_TYPE):
            continue
        missing = sorted(needed - set(given))
        if missing:
            raise InvalidAgent(
                f"{_where(plan, action)} takes a {wanted.__name__}, but is triggered by {came.__name__}",
                cause=f"{came.__name__} has no attribute {missing[0]!r}",
                way_out=f"annotate its event as {came.__name__}, or trigger it with {wanted.__name__}",
            )


def _check_types(plan: AgentPlan, action: Action, trigger: Trigger, known: _Known) -> list[str]:
    """A type that nothing sends is an error if it looks like a typo, otherwise a warning."""
    warnings: list[str] = []
    sendable = known.sendable
    for wanted in sorted(types_of(trigger, known.expressions) or ()):
        kind = known.classes.get(wanted)
        waits = f"{_place(trigger)}action {action.name!r} waits for {wanted!r}"
        if wanted == OutputEvent.EVENT_TYPE:
            warnings.append(f"{waits}, but an output goes downstream and triggers no action")
        absent = why_not_sent(wanted, plan.config)
        if absent and wanted not in sendable:
            warnings.append(f"{waits}, {absent}")
        if wanted in BUILT_IN or wanted in sendable:
            continue
        names = trigger.written.names - {wanted} if trigger.type else frozenset[str]()
        if known.unknown:
            if near := _nearest(wanted, names):
                warnings.append(f"{waits}; did you mean {near!r}?")
            continue
        said = f"{_where(plan, action, trigger)}: the trigger '{trigger}'"
        if trigger.type.startswith("attributes."):
            raise InvalidAgent(
                f"{said} is interpreted as an event type",
                cause="a plain name is an event type; an expression compares something",
                way_out=f'"{wanted} == true"' if _place(trigger) else f'@action("{wanted} == true")',
            )
        # Of all strings in the code, suggest only those used as event types.
        candidates = {item for code in known.code.values() for item in code.sends} | known.classes.keys()
        near = _nearest(wanted, (candidates - {wanted}) | BUILT_IN | names)
        if near and kind is None:
            raise InvalidAgent(
                f"{said} waits for the event type {wanted!r}, which nothing in this agent sends",
                way_out=f"did you mean '{near}'?",
            )
        warnings.append(f"{waits}, but nothing in this agent sends it")
    return warnings


def _check_attributes(plan: AgentPlan, action: Action, trigger: Trigger, known: _Known) -> list[str]:
    """Checks for attributes that the event cannot have."""
    if not trigger.expression:
        return []
    expression, where = known.expressions[trigger.expression], _where(plan, action, trigger)
    types = expression.types()
    for name in sorted(expression.names() & known.classes.keys()):
        raise InvalidAgent(
            f"{where}: the expression {expression.text!r} uses {name} without quotes",
            way_out=f"an event type is a string: type == '{name}'",
        )
    declared: set[str] = set()
    for kind in known.classes.values() if types is None else [known.classes.get(item) for item in types]:
        carried = None if kind is None else fields_of(kind)
        if kind is None or carried is None or known.may_be_plain(kind.EVENT_TYPE):
            return []
        declared |= set(carried)
    missing = sorted(expression.names() - declared)
    if types is not None and missing:
        near = _nearest(missing[0], declared)
        raise InvalidAgent(
            f"{where}: the expression {expression.text!r} uses the attribute {missing[0]!r}, "
            f"which {' or '.join(map(repr, sorted(types)))} does not have",
            cause=f"declared are {', '.join(sorted(declared)) or 'none'}",
            way_out=f"did you mean '{near}'?"
            if near
            else "declare it in the event class, or correct the name",
        )
    if known.unknown or known.plain_events:
        return []
    return [
        f"{_place(trigger)}action {action.name!r}: no event of this agent has the attribute {name!r} of '{trigger}'"
        for name in missing
    ]


def _check_sends(plan: AgentPlan, name: str, known: _Known) -> list[str]:
    return [
        f"action {name!r} sends {event_type!r}, which no action handles"
        for event_type in known.code[name].sends
        if event_type not in BUILT_IN and not handlers_of(event_type, plan, known.expressions)
    ]


def _nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The closest candidate: `InputEvent` for `_input_event`, `Scored` for `Scorred`."""
    plain = {_folded(item): item for item in sorted(candidates)}
    if _folded(name) in plain:
        return plain[_folded(name)]
    found = difflib.get_close_matches(_folded(name), plain, 1, 0.8)
    return plain[found[0]] if found else None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _check_settings(plan: AgentPlan) -> list[str]:
    """Rejects invalid option values here instead of on a worker; suggests the option whose name is closest."""
    options = all_options()
    warnings: list[str] = []
    for key in plan.config.to_dict():
        if key in options:
            plan.config.get(options[key])
            continue
        if is_type_level(key):
            plan.config.get(option_named(key))
            continue
        near = _nearest(key, set(options))
        if near:
            warnings.append(f"there is no option {key!r}; did you mean {near!r}?")
    return warnings
