"""Displays logged events in a terminal: a table of events, and a tree for each run.

Pure: takes events from `event_reader`, returns lines. The caller decides on width and colour.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from emberflow.events.run_ids import run_of
from emberflow.observability.event_reader import LoggedEvent, key_text
from emberflow.observability.terminal_text import Color, fit, pad, paint, width_of
from emberflow.rendering.plain_text import clean

REUSED = "reused"
CALLS = ("call", REUSED)
"""The kinds of entries that are calls of models and tools."""

_SAMPLE = 500
_TIME_WIDTH = len("07-31 12:00:00.000")
_LEAST_ATTRIBUTES = 20
_GAP = "  "


def short_attributes(event: LoggedEvent, width: int) -> str:
    """`score=3 reason="late"`, in at most `width` columns; for an error, its first line."""
    if event["kind"] == "error":
        return fit(clean_lines(event["error"])[0], width)
    attributes: dict[str, Any] = event["attributes"]
    shown: list[str] = []
    room = width
    for name, value in attributes.items():
        # Render no more of a long value than is visible.
        part = f"{clean(name)}={clean(_short_json(value, width))}"
        shown.append(part)
        room -= width_of(part) + 1
        if room < 0:
            break
    return fit(" ".join(shown), width)


def clean_lines(text: str) -> list[str]:
    """The lines of an error, each safe to print; at least one."""
    return [clean(line.rstrip()) for line in text.split("\n")] or [""]


def _short_json(value: Any, width: int) -> str:
    if isinstance(value, str):
        value = value[: width + 1]
    return json.dumps(value, ensure_ascii=False)[: width + 2]


def short_time(event: LoggedEvent) -> str:
    """`07-31 12:00:00.000`, UTC."""
    time: str = event["time"]
    return f"{time[5:10]} {time[11:23]}"


def _action_of(event: LoggedEvent) -> str:
    return event["action"] or event["upstream_action"]


class TableView:
    """Rows under a header. Column widths are taken from the first events, so that a long log is printed while it is read."""

    def __init__(self, sample: list[LoggedEvent], *, width: int, color: bool) -> None:
        self._color = color
        columns = {
            "AGENT": [event["agent"] for event in sample],
            "KEY": [key_text(event["key"]) for event in sample],
            "TYPE": [event["type"] for event in sample],
            "ACTION": [_action_of(event) for event in sample],
        }
        wanted = {
            name: max([len(name), *(width_of(clean(value)) for value in values)])
            for name, values in columns.items()
        }
        free = width - _TIME_WIDTH - _LEAST_ATTRIBUTES - len(_GAP) * (len(wanted) + 1)
        self._widths = _shared(wanted, max(free, 4 * len(wanted)))
        taken = _TIME_WIDTH + sum(self._widths.values()) + len(_GAP) * (len(wanted) + 1)
        self._attributes = max(width - taken, 1)

    def header(self) -> str:
        names = [pad("TIME (UTC)", _TIME_WIDTH), *(pad(name, size) for name, size in self._widths.items())]
        return paint(_GAP.join([*names, "ATTRIBUTES"]), Color.BOLD, enabled=self._color)

    def row(self, event: LoggedEvent) -> str:
        cells = [event["agent"], key_text(event["key"]), event["type"], _action_of(event)]
        sized = [pad(clean(cell), size) for cell, size in zip(cells, self._widths.values(), strict=True)]
        attributes = short_attributes(event, self._attributes)
        if event["kind"] == "error":
            return paint(
                _GAP.join([short_time(event), *sized, attributes]).rstrip(), Color.RED, enabled=self._color
            )
        sized[2] = paint(sized[2], Color.CYAN, enabled=self._color)
        time = paint(short_time(event), Color.DIM, enabled=self._color)
        return _GAP.join([time, *sized, attributes]).rstrip()


def _shared(wanted: dict[str, int], free: int) -> dict[str, int]:
    """Distributes the width: narrow columns get what they need, wide ones equal parts of the rest."""
    given: dict[str, int] = {}
    left = free
    for position, (name, size) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        given[name] = min(size, left // (len(wanted) - position))
        left -= given[name]
    return {name: given[name] for name in wanted}


def table_lines(events: Iterable[LoggedEvent], *, width: int, color: bool) -> Iterator[str]:
    """The header and a row for each event; nothing without events."""
    rest = iter(events)
    sample = list(itertools.islice(rest, _SAMPLE))
    if not sample:
        return
    view = TableView(sample, width=width, color=color)
    yield view.header()
    for event in itertools.chain(sample, rest):
        yield view.row(event)


def tree_lines(run: list[LoggedEvent], *, width: int, color: bool) -> Iterator[str]:
    """One run: its input, the actions each event triggered, the models, tools and agents they called, what they sent, and
    what failed."""
    yield _run_header(run, width, color)
    children: dict[str, list[int]] = {}
    ids = {
        event["id"]: position
        for position, event in enumerate(run)
        if event["kind"] != "error" and event["id"]
    }
    for position, event in enumerate(run):
        # An error is a child of the event whose action failed, an event a child of the event that caused it.
        parent = event["id"] if event["kind"] == "error" else event["upstream_id"]
        own = ids.get(parent) == position
        children.setdefault(parent if parent in ids and not own else "", []).append(position)
    start = _milliseconds(run[0])
    printed: set[int] = set()
    roots = children.get("", [])
    yield from _branches(run, roots, children, printed, start, width, color)
    for position in range(len(run)):
        # Events that no root leads to: in a corrupted log they may form a cycle.
        if position not in printed:
            yield from _branches(run, [position], children, printed, start, width, color)


def _branches(
    run: list[LoggedEvent],
    roots: list[int],
    children: dict[str, list[int]],
    printed: set[int],
    start: float,
    width: int,
    color: bool,
) -> Iterator[str]:
    # An explicit stack: a run may be a thousand events deep, more than Python recurses.
    stack: list[tuple[str, str, int | str, list[int]]] = _level(run, roots, "")[::-1]
    while stack:
        prefix, branch, node, below = stack.pop()
        lead = _indented(prefix + branch, width)
        if isinstance(node, str):
            yield lead + fit(f"{clean(node)}()", max(width - width_of(lead), 1))
            stack += _level(run, below, _next_prefix(prefix, branch), grouped=True)[::-1]
            continue
        if node in printed:
            continue
        printed.add(node)
        event = run[node]
        yield lead + _node_text(event, start, width - width_of(lead), color)
        if event["kind"] == "error":
            more = clean_lines(event["error"])[1:]
            below_error = _next_prefix(lead[:-3], branch) if lead.endswith(branch) else " " * width_of(lead)
            for line in more:
                yield below_error + paint(
                    fit(line, max(width - width_of(below_error), 1)), Color.RED, enabled=color
                )
        elif event["id"]:
            stack += _level(run, children.get(event["id"], []), _next_prefix(prefix, branch))[::-1]


def _level(
    run: list[LoggedEvent], positions: list[int], prefix: str, *, grouped: bool = False
) -> list[tuple[str, str, int | str, list[int]]]:
    """The nodes of one level, in order; events and errors become children of the action they come from."""
    nodes: list[tuple[int | str, list[int]]] = []
    actions: dict[str, list[int]] = {}
    for position in positions:
        action = _action_of(run[position])
        if grouped or not action:
            nodes.append((position, []))
        elif action in actions:
            actions[action].append(position)
        else:
            actions[action] = [position]
            nodes.append((action, actions[action]))
    last = len(nodes) - 1
    return [
        (prefix, "└─ " if position == last else "├─ ", node, below)
        for position, (node, below) in enumerate(nodes)
    ]


def _next_prefix(prefix: str, branch: str) -> str:
    return prefix + ("   " if branch == "└─ " else "│  ")


def _indented(lead: str, width: int) -> str:
    """Keeps deep levels visible by folding the left part of the indentation."""
    limit = max(width // 2, 12)
    if len(lead) <= limit:
        return lead
    return f"(level {len(lead) // 3}) " + lead[-3:]


def _node_text(event: LoggedEvent, start: float, width: int, color: bool) -> str:
    if event["kind"] == "error":
        return paint(
            fit("error: " + short_attributes(event, max(width, 1)), max(width, 1)), Color.RED, enabled=color
        )
    if event["kind"] in CALLS:
        return _call_text(event, width, color)
    called = event["upstream_agent"] or event["run"] != run_of(event["run"])
    kind = fit(clean(f"{event['agent']}: {event['type']}" if called else event["type"]), max(width, 1))
    after = f"  +{_milliseconds(event) - start:.0f} ms"
    room = width - width_of(kind) - len(after) - 2
    attributes = "  " + short_attributes(event, room) if room >= 8 and event["attributes"] else ""
    tail = after if width_of(kind) + width_of(attributes) + len(after) <= width else ""
    return paint(kind, Color.CYAN, enabled=color) + attributes + paint(tail, Color.DIM, enabled=color)


def _call_text(event: LoggedEvent, width: int, color: bool) -> str:
    """A call of a model or a tool: `tool 'add'  3 ms  arguments={"a":1}`."""
    found = dict(event["attributes"])
    parts = [f"{found.pop('ms', 0)} ms"]
    tokens = found.pop("total_tokens", None)
    if tokens is not None:
        parts.append(f"{tokens} tokens")
        found.pop("prompt_tokens", None)
        found.pop("completion_tokens", None)
    if event["kind"] == REUSED:
        parts.append("answered from the log")
    error = found.pop("error", None)
    parts += [f"{clean(name)}={clean(_short_json(value, max(width, 1)))}" for name, value in found.items()]
    if error is not None:
        parts.append(f"error: {clean_lines(str(error))[0]}")
    name = fit(clean(event["type"]), max(width, 1))
    rest = "  " + fit("  ".join(parts), max(width - width_of(name) - 2, 1))
    tone = Color.RED if error is not None else Color.DIM
    return paint(name, Color.BOLD, enabled=color) + paint(rest, tone, enabled=color)


def _run_header(run: list[LoggedEvent], width: int, color: bool) -> str:
    first = run[0]
    errors = sum(event["kind"] == "error" for event in run)
    calls = sum(event["kind"] in CALLS for event in run)
    events = len(run) - errors - calls
    took = max(_milliseconds(event) for event in run) - _milliseconds(first)
    what = f"{events} event{'' if events == 1 else 's'}"
    if calls:
        what += f", {calls} call{'' if calls == 1 else 's'}"
    if errors:
        what += f", {errors} error{'' if errors == 1 else 's'}"
    text = f"run {first['run'] or '(none)'}  {short_time(first)}  {what}, {took:.0f} ms  agent {first['agent']}  key {key_text(first['key'])}"
    return paint(fit(clean(text), width), Color.RED if errors else Color.BOLD, enabled=color)


def _milliseconds(event: LoggedEvent) -> float:
    try:
        return dt.datetime.fromisoformat(event["time"]).timestamp() * 1000
    except (ValueError, OverflowError):  # Formatted like a time but invalid, such as month 13.
        return 0.0
