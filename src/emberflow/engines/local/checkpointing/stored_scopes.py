"""What a subtask of a stage gets of the state that all subtasks of it had stored; the parallelism may have changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from emberflow.events.batch import MAX_WATERMARK
from emberflow.operators.partitions.operator_state import redistributed, united
from emberflow.operators.scope import EntryLoader, SavedScope
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.state.entry import Entry, SharedKey


def owned(entries: dict[Any, Entry], owns: Callable[[Any], bool]) -> dict[Any, Entry]:
    """The subtask's keys, and its own copy of what every subtask has."""
    return {
        key: copy.deepcopy(entry) if isinstance(key, SharedKey) else entry
        for key, entry in entries.items()
        if isinstance(key, SharedKey) or owns(key)
    }


def task_entries(
    entries: dict[Any, Entry], loader: EntryLoader | None, before: int | None, tasks: int
) -> tuple[dict[Any, Entry], list[Any]]:
    """Operator state for the tasks of a step, and the keys of tasks that are gone. There were `before` of them; None if that
    is not known, but all their entries are given."""
    shared: dict[Any, Entry] = {key: entry for key, entry in entries.items() if isinstance(key, SharedKey)}
    found: dict[Any, Entry] = {key: entry for key, entry in entries.items() if isinstance(key, int)}
    for task in range(before or 0):
        entry = None if task in found or loader is None else loader.load(task)
        if entry is not None:
            found[task] = entry
    made = united(found, tasks) if before == tasks else redistributed(found, tasks)
    return {**shared, **made}, [task for task in found if task >= tasks]


def _mark_of(exchange: int, stored: list[SavedScope], watermark: int) -> int:
    """How far an input had come whose tasks have other numbers now. One that has ended will not say so again."""
    marks = [mark for scope in stored for channel, mark, _ in scope.channels if channel[0] == exchange]
    ended = all(scope.ended for scope in stored)
    return MAX_WATERMARK if ended else max(watermark, min(marks, default=watermark))


def share(
    stored: list[SavedScope],
    owns: Callable[[Any], bool],
    channels: set[ChannelId],
    numbered: tuple[int, int] | None = None,
) -> SavedScope:
    """One subtask's share of what all subtasks of the stage had stored; the parallelism may have changed. `numbered`
    is the subtask's number and how many there are now, where there are no keys."""

    def timers(field: str) -> list[tuple[int, list[Any]]]:
        return [
            (time_ms, kept)
            for scope in stored
            for time_ms, keys in getattr(scope, field) or ()
            if (kept := [key for key in keys if owns(key)])
        ]

    def merged(pairs: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
        by_time: dict[int, list[Any]] = {}
        for time_ms, keys in pairs:
            by_time.setdefault(time_ms, []).extend(keys)
        return sorted(by_time.items())

    same = {channel for channel, _, _ in stored[0].channels} == channels
    watermark = min(scope.watermark for scope in stored)
    ended = all(scope.ended for scope in stored)
    if same:
        lowest: dict[ChannelId, int] = {}
        for channel, mark, _ in (item for scope in stored for item in scope.channels):
            lowest[channel] = min(mark, lowest.get(channel, MAX_WATERMARK))
        kept = [(channel, lowest[channel], active_ms) for channel, _, active_ms in stored[0].channels]
    else:
        kept = [(channel, _mark_of(channel[0], stored, watermark), 0) for channel in channels]
    known = [scope.forms for scope in stored if scope.forms is not None]
    return SavedScope(
        watermark=watermark,
        channels=kept,
        event_timers=merged(timers("event_timers")),
        processing_timers=merged(timers("processing_timers")),
        cleanup=merged(timers("cleanup")),
        ended=ended,
        parked=[(key, action) for scope in stored for key, action in scope.parked if owns(key)],
        forms={name: form for forms in known for name, form in forms.items()} if known else None,
        waiting=[
            item
            for number, scope in enumerate(stored)
            for item in scope.waiting
            if (owns(item[0]) if numbered is None else number % numbered[1] == numbered[0])
        ],
    )
