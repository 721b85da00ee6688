"""An agent's plan as text and as a Mermaid diagram."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.agent_events import ErrorEvent, InputEvent, OutputEvent
from emberflow.plan.agents.action_code import look_into
from emberflow.plan.agents.agent_plan import Action, AgentPlan
from emberflow.plan.agents.checks import expressions_of, handlers_of
from emberflow.plan.agents.guards import Guards
from emberflow.plan.cel.expression import CelExpression
from emberflow.rendering.secret_names import MASK, is_hidden

FORMS = ("text", "mermaid", "json")
_NAMES = {
    InputEvent.EVENT_TYPE: "InputEvent",
    OutputEvent.EVENT_TYPE: "OutputEvent",
    ErrorEvent.EVENT_TYPE: "ErrorEvent",
}


def render_agent(plan: AgentPlan, form: str) -> str:
    """Renders `text` or `mermaid`; `AgentPlan.explain` also supports `json`."""
    if form == "mermaid":
        return to_mermaid(plan)
    if form == "text":
        return to_text(plan)
    raise InvalidArgument(
        f"an agent cannot be shown as {form!r}", way_out=f"use one of {', '.join(map(repr, FORMS))}"
    )


def to_text(plan: AgentPlan) -> str:
    resources = [provider for named in plan.resource_providers.values() for provider in named.values()]
    lines = [
        f"agent {plan.name!r}: {_count(len(plan.actions), 'action')}, {_count(len(resources), 'resource')}"
    ]
    for action in plan.actions.values():
        lines += _action_lines(action)
    if resources:
        lines.append("resources")
        lines += [f"  {item.type.value} {item.name} = {item.describe()}" for item in resources]
    if plan.budgets:
        lines.append("budgets")
        lines += [f"  {budget}" for budget in plan.budgets]
    config = plan.config.to_dict()
    if config:
        lines.append("config")
        lines += [f"  {name} = {_setting(name, value)}" for name, value in sorted(config.items())]
    if plan.warnings:
        lines.append("warnings")
        lines += [f"  {warning}" for warning in plan.warnings]
    return "\n".join(lines)


def _action_lines(action: Action) -> list[str]:
    code = look_into(action.function)
    sends = [_name(event_type) for event_type in code.sends] + (["…"] if code.unknown else [])
    triggers = " | ".join(_name(str(trigger)) for trigger in action.triggers)
    parts = [("on", triggers or "nothing: only used as a fallback")]
    if sends:
        parts.append(("sends", ", ".join(sends)))
    if action.config:
        parts.append(
            ("config", ", ".join(f"{name}={_setting(name, item)}" for name, item in action.config.items()))
        )
    guards = _guards(action.guards)
    if guards:
        parts.append(("guards", "; ".join(guards)))
    lines = [f"{'async action' if action.is_async else 'action'} {action.name}"]
    for position, (title, text) in enumerate(parts, start=1):
        lines.append(f"  {'└─' if position == len(parts) else '├─'} {title:<6} {text}")
    return lines


def _guards(guards: Guards) -> list[str]:
    return [
        *([f"retry: {guards.retry}"] if guards.retry is not None else []),
        *([f"timeout: {guards.timeout_ms:,} ms"] if guards.timeout_ms is not None else []),
        *([f"fallback: {guards.fallback}"] if guards.fallback is not None else []),
    ]


def to_mermaid(plan: AgentPlan) -> str:
    """input -> actions -> events -> output; a dotted arrow depends on a function or an expression."""
    expressions = expressions_of(plan)
    ids = {name: f"a{index}" for index, name in enumerate(plan.actions)}
    lines = ["flowchart LR", '  input(["input"])', '  output(["output"])']
    for action in plan.actions.values():
        note = "<br/>async" if action.is_async else ""
        lines.append(f'  {ids[action.name]}["{_escape(action.name)}{note}"]')
    events: dict[str, str] = {}
    arrows: list[str] = []
    for action in plan.actions.values():
        for event_type in look_into(action.function).sends:
            target = _event_id(event_type, events)
            arrows.append(f"  {ids[action.name]} --> {target}")
    # Events that are handled but not known to be sent are drawn too.
    for action in plan.actions.values():
        for trigger in action.triggers:
            if trigger.type:
                _event_id(trigger.type, events)
    lines += [f'  {node}{{{{"{_escape(name)}"}}}}' for name, node in events.items()]
    for event_type, node in {InputEvent.EVENT_TYPE: "input", **events}.items():
        for name in handlers_of(event_type, plan, expressions):
            arrows.append(f"  {node} {_arrow(plan.actions[name], event_type, expressions)} {ids[name]}")
    for action in plan.actions.values():
        if action.guards.fallback is not None:
            arrows.append(f'  {ids[action.name]} -.->|"fallback"| {ids[action.guards.fallback]}')
    return "\n".join(lines + list(dict.fromkeys(arrows)))


def _event_id(event_type: str, events: dict[str, str]) -> str:
    if event_type in _NAMES:
        # An error event does not have a node in every diagram, unlike input and output.
        if event_type == ErrorEvent.EVENT_TYPE:
            return events.setdefault("ErrorEvent", f"e{len(events)}")
        return "input" if event_type == InputEvent.EVENT_TYPE else "output"
    return events.setdefault(event_type, f"e{len(events)}")


def _arrow(action: Action, event_type: str, expressions: dict[str, CelExpression]) -> str:
    if any(trigger.type == event_type for trigger in action.triggers):
        return "-->"
    for trigger in action.triggers:
        types = expressions[trigger.expression].types() if trigger.expression else None
        if not trigger.type and (types is None or event_type in types):
            return f'-.->|"{_escape(str(trigger))}"|'
    return "-.->"


def _name(event_type: str) -> str:
    return _NAMES.get(event_type, event_type)


def _setting(name: str, value: Any) -> str:
    return MASK if is_hidden(name, value) else shorten(getattr(value, "value", value), 60)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _escape(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
