"""The tortured job as a process: `program.py SETTINGS.json START`; goes on from its checkpoint directory if there is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from emberflow.streams import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.recovery.torture.desk import Inputs, build

MASTERS = {"spark[2]": "local[2]", "spark[2,4]": "local[2,4]", "cluster": "local-cluster[2,1,1024]"}


def main(file: str, start: str) -> None:
    settings = json.loads(Path(file).read_text())
    intervals = settings["checkpoint_ms"]
    master = MASTERS.get(settings["engine"])
    options = {"state_backend": "sqlite"} if settings["backend"] == "sqlite" else {}
    env = StreamExecutionEnvironment.get_execution_environment(
        options,
        engine="spark" if master else "local",
        master=master,
        checkpoint_dir=settings["checkpoints"],
        parallelism=2,
    )
    # Few key groups: on Spark each one costs time at every end of a batch, and there are few keys.
    env.set_max_parallelism(8)
    env.enable_checkpointing(intervals[int(start) % len(intervals)]).set_runtime_mode(
        RuntimeExecutionMode.STREAMING
    )
    build(
        env,
        inputs=Inputs(settings["seed"], settings["keys"]),
        count=settings["inputs"],
        rate=settings["rate"],
        port=settings["port"],
        finished=settings["finished"],
        out=settings["out"],
    )
    env.execute("torture")


if __name__ == "__main__":
    main(*sys.argv[1:])
