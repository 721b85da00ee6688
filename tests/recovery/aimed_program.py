"""The job of `aimed_kills.py` on Spark as a process of its own: `aimed_program.py FOLDER SINK`, where SINK is `files`,
`parquet` or `each-batch`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from emberflow.agents import AgentExecutionOptions, AgentsExecutionEnvironment, ErrorHandling
from emberflow.streams import DataGeneratorSource, RateLimiterStrategy, StreamExecutionEnvironment
from tests.recovery.aimed_kills import FOLDER, INPUTS, Desk, Echo, aimed_files, made_input


def build(env: StreamExecutionEnvironment, folder: Path) -> Any:
    source = DataGeneratorSource(
        made_input, count=INPUTS, rate_limiter_strategy=RateLimiterStrategy.per_second(6), parallelism=1
    )
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    inputs = env.from_source(source, None, "inputs")
    return agents_env.from_datastream(inputs, lambda value: value[0]).apply(Desk(folder))


def main(folder: Path) -> None:
    os.environ[FOLDER] = str(folder)
    (folder / "made").mkdir(exist_ok=True)
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="spark", checkpoint_dir=str(folder / "checkpoint")
    )
    env.set_parallelism(2)
    outputs = build(env, folder).to_datastream()
    outputs = outputs.key_by(lambda value: value[1]).process(Echo()).uid("echo")
    outputs.sink_to(aimed_files(folder / "output")).uid("files")
    env.execute("aimed kills")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
