"""Creates a savepoint from a Spark job's checkpoint directory; a session reads the state."""

from __future__ import annotations

from pathlib import Path

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.job.manifest import Manifest
from emberflow.engines.spark.driver.savepoints import last_batch, write_savepoint
from emberflow.engines.spark.engine import SparkEngine
from emberflow.savepoints.wiring import Wiring


def create(
    home: Path,
    manifest: Manifest,
    wiring: Wiring,
    calls: CallStoreLocation,
    target: str,
    master: str | None,
) -> list[str]:
    """See `engines/job/offline_savepoint.py`."""
    batch = write_savepoint(
        SparkEngine(master=master).session, home.resolve(), manifest, wiring, calls, target
    )
    if last_batch(home / "spark", "offsets") == batch:
        return []
    return [
        f"micro-batch {batch + 1} was started but not committed; if its output is already visible, it will be repeated. "
        "To avoid that, start the job once more and stop it with stop_with_savepoint()."
    ]
