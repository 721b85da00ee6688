"""Creates a savepoint from a local job's checkpoint directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.durable.location import CallStoreLocation
from emberflow.engines.job.manifest import Manifest
from emberflow.engines.local.checkpointing.checkpoints import FileCheckpoints
from emberflow.engines.local.checkpointing.sqlite_checkpoints import SQLITE_FILE, SqliteCheckpoints
from emberflow.engines.local.savepoints import write_savepoint
from emberflow.errors import CheckpointUnusable
from emberflow.savepoints.wiring import Wiring


def create(
    home: Path,
    manifest: Manifest,
    wiring: Wiring,
    calls: CallStoreLocation,
    target: str,
    master: str | None,
) -> list[str]:
    """See `engines/job/offline_savepoint.py`; `master` is not used."""
    store = SqliteCheckpoints(home) if (home / SQLITE_FILE).exists() else FileCheckpoints(home)
    checkpoint = store.load()
    if checkpoint is None:
        raise CheckpointUnusable(
            f"{home} has no checkpoint yet", way_out="let the job run until its first checkpoint"
        )

    def entries(uid: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        return store.stored_entries(uid) or iter(())

    write_savepoint(
        target,
        wiring,
        manifest.job_id,
        manifest.max_parallelism,
        checkpoint,
        entries,
        store,
        calls,
    )
    return []
