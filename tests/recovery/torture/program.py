"""The tortured job as a process: `program.py SETTINGS.json START`; continues from its checkpoint directory if there is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from emberflow.streams import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.recovery.torture.desk import Inputs, build
from tests.recovery.torture.planted import PLANTS

MASTERS = {"spark[2]": "local[2]", "spark[2,4]": "local[2,4]", "cluster": "local-cluster[2,1,1024]"}


def main(file: str, start: str) -> None:
    settings = json.loads(Path(file).read_text())
    if settings["plant"]:
        PLANTS[settings["plant"]](int(start), Path(settings["checkpoints"]))
    intervals = settings["checkpoint_ms"]
    master = MASTERS.get(settings["engine"])
    options = {"state_backend": "sqlite"} if settings["backend"] == "sqlite" else {}
    env = StreamExecutionEnvironment.get_execution_environment(
        options,
        engine="spark" if master else "local",
        master=master,
        checkpoint_dir=settings["checkpoints"],
        parallelism=settings["parallelism"][(int(start) - 1) % len(settings["parallelism"])],
    )
    # Few key groups: on Spark each one costs time at the end of every batch, and there are few keys.
    env.set_max_parallelism(8)
    env.enable_checkpointing(intervals[int(start) % len(intervals)]).set_runtime_mode(
        RuntimeExecutionMode.STREAMING
    )
    build(
        env,
        inputs=Inputs(settings["seed"], tuple(settings["keys"]), settings["inputs"], settings["source"]),
        rate=settings["rate"],
        port=settings["port"],
        finished=settings["finished"],
        folder=settings["input_files"],
        out=settings["out"],
    )
    env.execute("torture")


if __name__ == "__main__":
    main(*sys.argv[1:])
