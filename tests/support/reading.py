"""Checks of what every source must do, for any source, any chunk limits and any restarts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from emberflow.connectors.source import Source


def through_json(position: Any) -> Any:
    return json.loads(json.dumps(position))


def read_channel(source: Source, channel: int, position: Any, limit: int = 1000) -> list[Any]:
    """Reads to the end, without interruption."""
    chunks = list(source.read(channel, position, limit))
    assert all(not chunk.end for chunk in chunks[:-1])
    assert chunks[-1].end
    return [value for chunk in chunks for value in chunk.values]


def read_all(source: Source, parallelism: int = 1, limit: int = 1000) -> list[Any]:
    return [
        value
        for channel, position in enumerate(source.start(parallelism))
        for value in read_channel(source, channel, position, limit)
    ]


def read_restarting(
    source: Source, channel: int, position: Any, limits: list[int], chunks_per_run: int
) -> list[Any]:
    """Stops after every few chunks and continues with a copy of the source from the stored position."""
    blob = pickle.dumps(source)
    found: list[Any] = []
    turns: Iterator[int] = cycle(limits)
    while True:
        fresh: Source = pickle.loads(blob)
        chunks = fresh.read(channel, through_json(position), next(turns))
        for _ in range(chunks_per_run):
            chunk = next(chunks)
            found += chunk.values
            position = chunk.position
            if chunk.end:
                return found


def read_planned(source: Source, channel: int, position: Any, limits: list[int]) -> list[Any]:
    """Like Spark: plans on one copy, reads up to the planned position on another."""
    blob = pickle.dumps(source)
    found: list[Any] = []
    turns: Iterator[int] = cycle(limits)
    while True:
        limit = next(turns)
        driver: Source = pickle.loads(blob)
        worker: Source = pickle.loads(blob)
        planned = driver.plan(channel, through_json(position), limit)
        assert planned is not None
        target, end = through_json(planned[0]), planned[1]
        for chunk in worker.read(channel, through_json(position), limit):
            found += chunk.values
            if through_json(chunk.position) == target:
                assert chunk.end == end
                break
        else:
            raise AssertionError(f"reading never passed the planned position {target}")
        position = target
        if end:
            return found
