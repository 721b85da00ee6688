"""What packages above `streams` need to add steps that have no method of their own.

The agents package calls it. Names of streams and environments that begin with an underscore are used inside this
package only; what others need of them has a function here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from emberflow.plan.specs import Spec
from emberflow.streams.data_stream import DataStream, DataStreamSink
from emberflow.streams.environment import StreamExecutionEnvironment
from emberflow.streams.keyed_stream import KeyedStream

K = TypeVar("K")


def add_keyed_step(stream: KeyedStream[Any, Any], spec: Spec, name: str) -> DataStream[Any]:
    """Adds any keyed step behind a stream."""
    return stream._keyed(spec, name)


def together_with(stream: KeyedStream[K, Any], more: DataStream[Any]) -> KeyedStream[K, Any]:
    """The stream with further records, which get their keys from the same selector."""
    outlets = (*stream._outlets, *more._outlets)
    return KeyedStream(stream._env, outlets, stream._key_selector, stream._key_name)


def is_bounded(stream: DataStream[Any]) -> bool:
    """Whether everything that feeds the stream ends by itself."""
    return stream._env._program.freeze("input", {node for node, _ in stream._outlets}).bounded


def specs_of(env: StreamExecutionEnvironment) -> list[Spec]:
    """The steps that the program has so far, in the order in which they were added."""
    return env._program.specs()


def leave_out(sink: DataStreamSink) -> None:
    """The sink is not executed after all."""
    sink._env._leave_out(sink._node_id)
