"""Creates a savepoint from a checkpoint directory whose job is not running."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.job.manifest import read_manifest
from emberflow.engines.job.ownership import reading
from emberflow.engines.job.savepoint_calls import noted_place
from emberflow.errors import CheckpointUnusable, PackageMissing, describe_cause
from emberflow.savepoints.wiring import read_wiring


def create_savepoint(
    directory: str, target: str, *, master: str | None = None, call_store: str | None = None
) -> list[str]:
    """Writes the latest checkpoint as a savepoint; returns notes for the user. `call_store` is the job's option of that
    name; it is needed only if the job could not store the address."""
    home = Path(directory)
    try:
        manifest = read_manifest(home)
    except OSError as error:
        raise CheckpointUnusable(
            f"{directory} is not a checkpoint directory",
            cause=describe_cause(error),
            way_out="name the directory given as checkpoint_dir or --checkpoint-dir",
        ) from error
    if manifest.engine == "spark" and importlib.util.find_spec("pyspark") is None:
        raise PackageMissing(
            f"{directory} was written by the engine 'spark', whose state only pyspark can read",
            way_out='pip install "emberflow[spark]"',
        )
    engine: Any = importlib.import_module(f"emberflow.engines.{manifest.engine}.offline")
    address = noted_place(home) if call_store is None else call_store
    calls = CallStoreLocation.in_directory(home, manifest.job_id, address)
    with reading(home):
        return engine.create(home, manifest, read_wiring(home), calls, target, master)
