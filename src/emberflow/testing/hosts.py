"""Hosts: the ways to run a program, each behind the same two methods.

A scenario is written once as `build(env) -> DataStream`; a host creates the environment, runs the program through the
public API and returns its output.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from emberflow.errors import EmberflowError, EngineFailed
from emberflow.plan.job_contract import RuntimeExecutionMode
from emberflow.streams.data_stream import DataStream
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.testing.committed_files import literal_files, read_committed
from emberflow.testing.sentinels import crash_folder
from emberflow.testing.spark_session import shared_session

Build = Callable[[StreamExecutionEnvironment], DataStream[Any]]
T = TypeVar("T")
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The committed output of a program that was started again after every crash."""

    values: list[Any]
    """In the order of their commits."""
    starts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An engine with a mode, a parallelism and a state backend."""

    name: str
    engine: str
    mode: RuntimeExecutionMode
    parallelism: int = 1
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    needs_checkpoint_dir: bool = False
    timeout_s: float = 300
    """Protects against hangs; generous enough for a busy machine."""

    @property
    def streaming(self) -> bool:
        """Whether the host reads its sources as streams."""
        return self.mode is RuntimeExecutionMode.STREAMING

    def emitted(self, running: Sequence[T]) -> list[T]:
        """What a keyed `reduce`, `sum`, … emits for one key whose running values these are: all in STREAMING mode, the last
        in BATCH mode."""
        return list(running if self.streaming else running[-1:])

    def __str__(self) -> str:
        return self.name

    def environment(
        self, *, checkpoint_dir: PathLike | None = None, options: dict[str, Any] | None = None
    ) -> StreamExecutionEnvironment:
        """Creates an environment for this host. A `clock` among the options applies to the local engine only."""
        env = StreamExecutionEnvironment.get_execution_environment(
            {**self.options, **(options or {})},
            engine=self.engine,
            spark=shared_session() if self.engine == "spark" else None,
            checkpoint_dir=checkpoint_dir,
            parallelism=self.parallelism,
        )
        return env.set_runtime_mode(self.mode)

    def run(
        self,
        build: Build,
        *,
        checkpoint_dir: PathLike | None = None,
        options: dict[str, Any] | None = None,
        limit: int | None = None,
    ) -> list[Any]:
        """Runs the program to its end and returns the records of the stream that `build` returned."""
        with tempfile.TemporaryDirectory(prefix="emberflow-host-") as temporary:
            directory = checkpoint_dir or (temporary if self.needs_checkpoint_dir else None)
            env = self.environment(checkpoint_dir=directory, options=options)
            stream = build(env)
            if limit is not None:
                found = stream.execute_and_collect(limit=limit)
                assert isinstance(found, list)
                return found
            return self._collect(stream)

    def _collect(self, stream: DataStream[Any]) -> list[Any]:
        results = stream.execute_and_collect()
        assert not isinstance(results, list)
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            results.close()

        # A scenario that hangs should fail by itself, with its name, instead of stopping the whole run.
        timer = threading.Timer(self.timeout_s, stop)
        timer.daemon = True
        timer.start()
        try:
            with results:
                values = list(results)
        finally:
            timer.cancel()
        if overdue.is_set():
            raise EngineFailed(
                f"the program did not end within {self.timeout_s} s on {self.name}; got {values!r}"
            )
        return values

    def run_to_files(
        self,
        build: Build,
        folder: PathLike,
        *,
        checkpoint_interval_ms: int = 20,
        options: dict[str, Any] | None = None,
        max_starts: int = 12,
    ) -> Committed:
        """Runs the program into files below `folder`, with checkpoints, repeatedly until no crash is left.

        Only an error caused by a sentinel of the test leads to another start; any other is raised. Create sources with
        crashes outside `build`, otherwise each start has new ones.
        """
        output, checkpoints = Path(folder) / "output", Path(folder) / "checkpoints"
        for start in range(1, max_starts + 1):
            before = _crashes()
            env = self.environment(checkpoint_dir=checkpoints, options=options)
            env.enable_checkpointing(checkpoint_interval_ms)
            build(env).sink_to(literal_files(output)).uid("files")
            try:
                self._execute(env)
            except EmberflowError:
                if _crashes() == before:
                    raise
            else:
                return Committed(values=read_committed(output), starts=start)
        raise EngineFailed(
            f"the program crashed {max_starts} times on {self.name}; are crashes created inside build()?"
        )

    def _execute(self, env: StreamExecutionEnvironment) -> None:
        client = env.execute_async("run to files")
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            client.cancel()

        timer = threading.Timer(self.timeout_s, stop)
        timer.daemon = True
        timer.start()
        try:
            client.get_job_execution_result().result()
        finally:
            timer.cancel()
        if overdue.is_set():
            raise EngineFailed(f"the program did not end within {self.timeout_s} s on {self.name}")


def _crashes() -> set[str]:
    # Not the hidden ones: those belong to latches and do not require another start.
    return {name for name in os.listdir(crash_folder()) if not name.startswith(".")}


_STREAMING, _BATCH = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH

LOCAL = Host(name="local", engine="local", mode=_STREAMING)
LOCAL_BATCH = Host(name="local-batch", engine="local", mode=_BATCH)
LOCAL_SQLITE = Host(
    name="local-sqlite",
    engine="local",
    mode=_STREAMING,
    options={"state_backend": "sqlite"},
    needs_checkpoint_dir=True,
)
LOCAL_2 = Host(name="local-2", engine="local", mode=_STREAMING, parallelism=2)
SPARK = Host(name="spark", engine="spark", mode=_STREAMING, parallelism=2, timeout_s=500)
SPARK_BATCH = Host(name="spark-batch", engine="spark", mode=_BATCH, parallelism=2, timeout_s=500)

HOSTS: tuple[Host, ...] = (LOCAL, LOCAL_BATCH, LOCAL_SQLITE, LOCAL_2, SPARK, SPARK_BATCH)
STREAMING_HOSTS = tuple(host for host in HOSTS if host.streaming)
BATCH_HOSTS = tuple(host for host in HOSTS if not host.streaming)
LOCAL_HOSTS = tuple(host for host in HOSTS if host.engine == "local")
