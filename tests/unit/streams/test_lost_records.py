"""Sources and functions that would make records disappear silently fail the job instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import SinkFailed, SourceFailed, StepFailed
from emberflow.streams import (
    Chunk,
    DataGeneratorSource,
    Encoder,
    FileSink,
    Source,
    StreamExecutionEnvironment,
    WatermarkStrategy,
)


class TooFewTimestamps(Source[str]):
    def start(self, parallelism: int) -> list[Any]:
        return [0]

    def read(self, channel: int, position: Any, limit: int) -> Iterator[Chunk[str]]:
        yield Chunk(["a", "b"], 2, [1], end=True)


def stops(value: Any, *rest: Any) -> Any:
    """As `next()` of an iterator that has ended."""
    if value == 2:
        raise StopIteration
    return value


class Stopping(Encoder[Any]):
    def encode(self, value: Any) -> bytes:
        return str(stops(value)).encode()


def misaligned(env: StreamExecutionEnvironment, folder: Path) -> Any:
    return env.add_source(TooFewTimestamps())


def assigner(env: StreamExecutionEnvironment, folder: Path) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(stops)
    return env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(strategy)


def generator(env: StreamExecutionEnvironment, folder: Path) -> Any:
    return env.add_source(DataGeneratorSource(stops, count=4))


def mapped(env: StreamExecutionEnvironment, folder: Path) -> Any:
    return env.from_collection([1, 2, 3]).map(stops)


def encoder(env: StreamExecutionEnvironment, folder: Path) -> Any:
    stream = env.from_collection([1, 2, 3])
    stream.sink_to(FileSink.for_row_format(str(folder), Stopping()).build())
    return stream


@pytest.mark.parametrize(
    ("build", "error", "cause"),
    [
        (misaligned, SourceFailed, "a chunk has 2 values and 1 timestamps"),
        (assigner, StepFailed, "could not process the value 2"),
        (generator, SourceFailed, "StopIteration"),
        (mapped, StepFailed, "could not process the value 2"),
        (encoder, SinkFailed, "the value 2 could not be encoded"),
    ],
)
def test_the_job_fails(build: Callable[..., Any], error: type[Exception], cause: str, tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    stream = build(env, tmp_path)
    with pytest.raises(error, match=cause):
        stream.execute_and_collect(limit=100)
