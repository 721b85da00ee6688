"""The keyed level of a Spark job without Spark: state versioned by batch, timers, a sink that ignores batches it has
committed, and a worker process that can die at any step. It guarantees what Spark guarantees, and nothing more."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.spark.wire.job_spec import dump_spec
from emberflow.engines.spark.wire.packet_rows import PARKED, PacketRow
from emberflow.engines.spark.worker import worker_process
from emberflow.engines.spark.worker.keyed_level import KeyedLevel
from emberflow.events.batch import Batch
from emberflow.events.packets import decode_packet
from emberflow.plan.graphs.job_graph import JobGraph
from tests.support.spark_specs import spec_of


class Death(Enum):
    """Where a worker or driver dies during a batch."""

    NEVER = auto()
    AFTER_THE_FIRST_GROUP = auto()
    BEFORE_THE_TASK_ENDS = auto()
    BEFORE_THE_SINK_COMMITS = auto()
    BEFORE_SPARK_COMMITS = auto()


class _Died(Exception):
    pass


@dataclass
class _Store:
    """What Spark stores for one key group."""

    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    timers: set[int] = field(default_factory=set[int])


class _Handle:
    """A processor's state handle, for the group that is being processed."""

    def __init__(self) -> None:
        self.current = _Store()

    def registerTimer(self, at_ms: int) -> None:
        self.current.timers.add(at_ms)


class _Value:
    def __init__(self, handle: _Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def exists(self) -> bool:
        return self._name in self._handle.current.variables

    def get(self) -> Any:
        return self._handle.current.variables.get(self._name)

    def update(self, value: Any) -> None:
        self._handle.current.variables[self._name] = value


class _Map:
    def __init__(self, handle: _Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def _items(self) -> dict[Any, Any]:
        return self._handle.current.variables.setdefault(self._name, {})

    def getValue(self, key: Any) -> Any:
        return self._items().get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self._items()[key] = value

    def removeKey(self, key: Any) -> None:
        self._items().pop(key, None)


class _Context:
    def __init__(self, batch: int, attempt: int) -> None:
        self._properties = {"streaming.sql.batchId": str(batch), "sql.streaming.queryId": "query"}
        self._attempt = attempt

    def partitionId(self) -> int:
        return 0

    def taskAttemptId(self) -> int:
        return self._attempt

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


class MicroBatches:
    """A query with one keyed stage after one source, run by one task."""

    def __init__(
        self, graph: JobGraph, home: Path, monkeypatch: pytest.MonkeyPatch, deadline_ms: int = 40
    ) -> None:
        spec = spec_of(
            graph,
            max_parallelism=4,
            at_end={stage.id: stage.level > 0 for stage in graph.stages},
            max_records=1_000,
            client_dir=str(home / "client"),
            calls=CallStoreLocation.in_directory(home, "j", ""),
            limits_dir=str(home / "limits"),
            deadline_ms=deadline_ms,
        )
        self._data = dump_spec(spec)
        self._monkeypatch = monkeypatch
        self._stored: dict[int, _Store] = {}
        self._batch = 0
        self._attempts = 0
        self.committed: list[Any] = []
        self.parked = 0
        self._output_of: set[int] = set()
        self._dead: list[Any] = []
        self._levels = [stage.id for stage in graph.stages if stage.level == 1]
        self.kills: Callable[[], bool] = lambda: True
        """Whether the worker process dies with an attempt, or only the attempt."""

    def run(
        self, inputs: list[Any], deaths: list[Death], between: Callable[[], None], *, ends: bool = False
    ) -> None:
        """Runs one batch, repeated after each death; `between` is called before every attempt."""
        now_ms = int(time.time() * 1000)
        for death in [*deaths, Death.NEVER]:
            between()
            try:
                self._attempt(inputs, now_ms, death, ends)
                return
            except _Died:
                if self.kills():
                    self._kill()

    def _attempt(self, inputs: list[Any], now_ms: int, death: Death, ends: bool) -> None:
        self._attempts += 1
        context = _Context(self._batch, self._attempts)
        self._monkeypatch.setattr(TaskContext, "get", lambda: context)
        handle, stored = _Handle(), copy.deepcopy(self._stored)
        level = KeyedLevel(self._data, self._levels, timed=True)
        level.init(handle, lambda name: _Value(handle, name), lambda name: _Map(handle, name))
        rows: list[PacketRow] = []
        for served, part in enumerate(
            self._serve(level, handle, stored, self._packets(inputs, ends), now_ms)
        ):
            rows += part
            if served == 0 and death is Death.AFTER_THE_FIRST_GROUP:
                raise _Died
        if death is Death.BEFORE_THE_TASK_ENDS:
            raise _Died
        level.close()
        if death is Death.BEFORE_THE_SINK_COMMITS:
            raise _Died
        if self._batch not in self._output_of:
            self._output_of.add(self._batch)
            self.committed += [
                value for row in rows if row[1] < PARKED for value in decode_packet(row[4]).batch.values
            ]
        if death is Death.BEFORE_SPARK_COMMITS:
            raise _Died
        self.parked = sum(row[2] for row in rows if row[1] == PARKED)
        self._stored = stored
        self._batch += 1

    def _packets(self, inputs: list[Any], ends: bool) -> dict[int, list[PacketRow]]:
        _, stage = worker_process.open_stage(self._data, 0, 0)
        stage.exits.new_batch(0, 0)
        stage.exits.select_channel(0)
        stage.task.new_channel()
        if inputs:
            stage.task.feed(Batch(inputs))
        if ends:
            stage.task.end_channel()
        found: dict[int, list[PacketRow]] = {}
        for row in stage.finish():
            found.setdefault(row[0], []).append(row)
        return found

    def _serve(
        self,
        level: KeyedLevel,
        handle: _Handle,
        stored: dict[int, _Store],
        packets: dict[int, list[PacketRow]],
        now_ms: int,
    ) -> Iterator[list[PacketRow]]:
        for kg, rows in packets.items():
            handle.current = stored.setdefault(kg, _Store())
            yield list(level.on_rows(kg, rows, now_ms))
        due = sorted((at_ms, kg) for kg, store in stored.items() for at_ms in store.timers if at_ms <= now_ms)
        for at_ms, kg in due:
            handle.current = stored[kg]
            yield list(level.on_timer(kg, at_ms, now_ms))
            stored[kg].timers.discard(at_ms)

    def _kill(self) -> None:
        """The process is gone: nothing of it continues, its lease expires, the next one knows only what is stored."""
        calls = worker_process._calls
        assert calls is not None
        stopped = threading.Event()
        calls._loop.call_soon_threadsafe(lambda: (calls._loop.stop(), stopped.set()))
        stopped.wait()
        while calls._loop.is_running():
            time.sleep(0.001)
        for log in worker_process._logs.values():
            with log._lock:
                log._store.close()
                log._store = _Nowhere(log._store.owner)  # pyright: ignore[reportAttributeAccessIssue]
        self._dead += [(calls._loop, *worker_process._logs.values())]
        worker_process._calls = None
        for known in (worker_process._logs, worker_process._stages, worker_process._decisions):
            known.clear()

    def end(self) -> None:
        self._kill()
        for loop, *logs in self._dead:
            # Where nothing they do is visible.
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks))
            for log in logs:
                log.close()
            loop.close()


class _Nowhere:
    """The store of a dead process."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.size = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None
