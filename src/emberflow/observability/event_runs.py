"""Logged events grouped by run; what an agent called or caused in another agent belongs to the run that did so."""

from __future__ import annotations

from collections.abc import Iterable

from emberflow.events.run_ids import run_of
from emberflow.observability.event_reader import LoggedEvent


def runs_of(events: Iterable[LoggedEvent]) -> list[list[LoggedEvent]]:
    """The runs in the order in which they began, each with its events in order. The run of an agent that processes the
    output of another one follows the events of that agent."""
    runs = _by_agent(events)
    sent = {(event["agent"], event["id"]): run for run in runs for event in run if event["id"]}
    caused: dict[int, list[list[LoggedEvent]]] = {}
    roots: list[list[LoggedEvent]] = []
    for run in runs:
        cause = sent.get((run[0]["upstream_agent"], run[0]["upstream_id"]))
        if cause is None or cause is run:
            roots.append(run)
        else:
            caused.setdefault(id(cause), []).append(run)
    found = [_with_caused(run, caused) for run in roots]
    # In a corrupted log, runs may seem to have caused each other.
    while caused:
        _, rest = caused.popitem()
        found.extend(_with_caused(run, caused) for run in rest)
    return found


def _by_agent(events: Iterable[LoggedEvent]) -> list[list[LoggedEvent]]:
    runs: dict[tuple[str, str], list[LoggedEvent]] = {}
    by_id: dict[str, list[LoggedEvent]] = {}
    """The run that began last under an id: agents of different programs may have the same ids."""
    for event in events:
        run, outer = event["run"], run_of(event["run"])
        if run != outer and outer in by_id:
            by_id[outer].append(event)
            continue
        found = runs.get((event["agent"], outer))
        if found is None:
            found = runs[event["agent"], outer] = []
            by_id[outer] = found
        found.append(event)
    return list(runs.values())


def _with_caused(run: list[LoggedEvent], caused: dict[int, list[list[LoggedEvent]]]) -> list[LoggedEvent]:
    found: list[LoggedEvent] = []
    stack = [run]
    while stack:
        one = stack.pop()
        found += one
        stack += caused.pop(id(one), [])[::-1]
    return found
