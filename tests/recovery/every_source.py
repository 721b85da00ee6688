"""A program that reads every kind of source, each with as many channels as it can have; may fail once at a given value.

As a process: `every_source.py ENGINE FOLDER PARALLELISM [VALUE raise|kill]`. `FOLDER/failed` records that it did.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from emberflow.streams import (
    DataGeneratorSource,
    DataStream,
    FileSource,
    IterableSource,
    MapFunction,
    StreamExecutionEnvironment,
    StreamFormat,
)
from emberflow.testing import TestSource
from emberflow.testing.committed_files import literal_files, read_committed

FILES = 5
LINES = 8
NUMBERS = 40
SPARK_OPTIONS = {"max_records_per_batch": 15}
"""Three micro-batches."""

EXPECTED = sorted(
    [f"file {file}.{line}" for file in range(FILES) for line in range(LINES)]
    + [f"{kind} {number}" for kind in ("sequence", "generated", "iterated", "collected", "tested")
       for number in range(NUMBERS)]
)  # fmt: skip


class FailOnce(MapFunction):
    """Raises, or kills the program with its workers, when it first receives a value."""

    def __init__(self, folder: Path, value: str, how: str) -> None:
        self._marker = folder / "failed"
        self._value = value
        self._how = how
        self._driver = os.getpid()

    def map(self, value: str) -> str:
        if value == self._value and not self._marker.exists():
            self._marker.touch()
            if self._how == "kill":
                os.killpg(os.getpgid(self._driver), signal.SIGKILL)
            raise RuntimeError("as the test wants it")
        return value


def numbers(kind: str) -> list[str]:
    return [f"{kind} {number}" for number in range(NUMBERS)]


def build(env: StreamExecutionEnvironment, folder: Path, value: str = "", how: str = "raise") -> DataStream:
    inputs = folder / "in"
    if not inputs.exists():
        inputs.mkdir(parents=True)
        for file in range(FILES):
            (inputs / f"{file}.txt").write_text("".join(f"file {file}.{line}\n" for line in range(LINES)))
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), inputs).build()
    return (
        env.add_source(files)
        .union(
            env.from_sequence(0, NUMBERS - 1).map(lambda number: f"sequence {number}"),
            env.add_source(DataGeneratorSource(lambda index: f"generated {index}", count=NUMBERS)),
            env.add_source(IterableSource(lambda: numbers("iterated"))),
            env.from_collection(numbers("collected")),
            env.add_source(TestSource(numbers("tested"))),
        )
        .map(FailOnce(folder, value, how))
        .key_by(lambda text: text.split()[0])
        .map(lambda text: text)
    )


def committed(folder: Path) -> list[str]:
    output = folder / "out"
    return sorted(read_committed(output)) if output.exists() else []


def run(env: StreamExecutionEnvironment, folder: Path, value: str = "", how: str = "raise") -> None:
    env.enable_checkpointing(20)
    build(env, folder, value, how).sink_to(literal_files(folder / "out")).uid("out")
    env.execute("every source")


def main(argv: list[str]) -> None:
    engine, folder, parallelism, *failure = argv
    options = SPARK_OPTIONS if engine == "spark" else {}
    env = StreamExecutionEnvironment.get_execution_environment(
        options, engine=engine, checkpoint_dir=Path(folder) / "checkpoint", parallelism=int(parallelism)
    )
    run(env, Path(folder), *failure)


if __name__ == "__main__":
    main(sys.argv[1:])
