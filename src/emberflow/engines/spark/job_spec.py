"""What is shipped to Spark's workers: the job, as bytes, and how a worker brings it back to life.

User classes of `__main__` are carried along and put into the worker's own `__main__`, so that records and state that
hold them are pickled by name, quickly, and fit the program's next version after a restart.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from emberflow.errors import NotSerializable, describe_cause
from emberflow.operators.channels import ChannelId
from emberflow.plan.job_graph import JobGraph, idle_timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    graph: JobGraph
    job_id: str
    parallelism: int
    max_parallelism: int
    batch: bool
    channels: dict[int, int]
    """stage -> number of channels it sends"""
    at_end: dict[int, bool]
    """stage -> its channels' watermarks count at the end of a batch only"""
    max_records: int
    client_dir: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])

    def input_channels(self, stage_id: int) -> list[ChannelId]:
        return [
            (item.id, channel)
            for item in self.graph.inputs_of(stage_id)
            for channel in range(self.channels[item.source_stage])
        ]

    def idle_of(self, stage_id: int) -> dict[int, int]:
        timeouts = idle_timeouts(self.graph)
        return {item.id: timeouts[item.id] for item in self.graph.inputs_of(stage_id) if item.id in timeouts}


def dump_spec(spec: JobSpec) -> bytes:
    """Bytes of a job; raises NotSerializable naming the function that cannot travel."""
    main = sys.modules.get("__main__")
    types = {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ == "__main__"
    }
    try:
        return cloudpickle.dumps((spec, types), 5)
    except Exception as error:
        raise _blame(spec, error) from error


def _blame(spec: JobSpec, error: BaseException) -> NotSerializable:
    way_out = "open connections, locks and files in open() instead of keeping them in the function"
    for node in spec.graph.stream_graph.nodes:
        try:
            cloudpickle.dumps(node.spec, 5)
        except Exception as cause:
            where = f" ({node.location})" if node.location else ""
            return NotSerializable(
                f"the function of step {node.name!r}{where} cannot be sent to Spark's workers",
                cause=describe_cause(cause),
                way_out=way_out,
            )
    return NotSerializable(
        "the program cannot be sent to Spark's workers", cause=describe_cause(error), way_out=way_out
    )


_loaded: dict[str, JobSpec] = {}


def load_spec(data: bytes) -> JobSpec:
    """The job behind the bytes, once per process."""
    digest = hashlib.sha256(data).hexdigest()
    spec = _loaded.get(digest)
    if spec is None:
        spec, types = pickle.loads(data)
        main: Any = sys.modules["__main__"]
        for name, value in types.items():
            setattr(main, name, value)
        _loaded.clear()
        _loaded[digest] = spec
    return spec
