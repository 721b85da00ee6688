"""The job of `aimed_kills.py` on Spark as a separate process: `aimed_program.py FOLDER SINK`, where SINK is `files`,
`parquet` or `each-batch`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from emberflow.agents import AgentExecutionOptions, AgentsExecutionEnvironment, ErrorHandling
from emberflow.streams import StreamExecutionEnvironment
from tests.recovery.aimed_kills import (
    FOLDER,
    Desk,
    EachBatch,
    Echo,
    GatedSource,
    aimed_files,
    as_row,
)


def build(env: StreamExecutionEnvironment, folder: Path) -> Any:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    inputs = env.from_source(GatedSource(folder), None, "inputs")
    return agents_env.from_datastream(inputs, lambda value: value[0]).apply(Desk(folder))


def to_files(env: StreamExecutionEnvironment, outputs: Any, folder: Path) -> None:
    outputs = outputs.key_by(lambda value: value[1]).process(Echo()).uid("echo")
    outputs.sink_to(aimed_files(folder / "output")).uid("files")
    env.execute("aimed kills")


def to_query(outputs: Any, folder: Path, sink: str) -> None:
    """A query started by the user; it ends when the test is done."""
    rows = outputs.map(as_row).to_dataframe("kind string, key string, number long, answer string, seen long")
    writer = rows.writeStream.option("checkpointLocation", str(folder / "spark"))
    writer = writer.trigger(processingTime="500 milliseconds")
    if sink == "each-batch":
        writer = writer.foreachBatch(EachBatch(folder))
    else:
        writer = writer.format("parquet").option("path", str(folder / "output"))
    writer.start().awaitTermination()


def main(folder: Path, sink: str) -> None:
    os.environ[FOLDER] = str(folder)
    (folder / "made").mkdir(exist_ok=True)
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="spark", checkpoint_dir=str(folder / "checkpoint")
    )
    env.set_parallelism(2)
    outputs = build(env, folder).to_datastream()
    if sink == "files":
        to_files(env, outputs, folder)
    else:
        to_query(outputs, folder, sink)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
