"""Bugs that can be planted into the product, to verify that the torture test finds them. Applied by `program.py` in the
driver of a local job; each is one that the product could have, or once had."""

from __future__ import annotations

import fcntl
import os
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emberflow.approvals import asking, question_files
from emberflow.connectors.files.commit_ledger import CommitLedger
from emberflow.engines.local import tasks
from emberflow.engines.local.checkpointing.checkpoints import FileCheckpoints, read_checkpoint
from emberflow.errors import CorruptData
from emberflow.operators.agents.agent_runtime import AgentRuntime


def keys_by_checksum(start: int, checkpoints: Path) -> None:
    """32-bit identities, as they once were."""

    def key_digest(self: Any, key: Any) -> str:
        number = key % 2**32 if isinstance(key, int) else zlib.crc32(str(key).encode())
        return f"{number:08x}"

    AgentRuntime.key_digest = key_digest


def prepared_is_forgotten(start: int, checkpoints: Path) -> None:
    """What a checkpoint has decided is not committed after a restart."""
    commit = CommitLedger.commit
    calls: list[int] = []

    def skipping(self: Any, epoch: int, renames: Any) -> None:
        calls.append(epoch)
        if start == 1 or len(calls) > 1:
            commit(self, epoch, renames)

    CommitLedger.commit = skipping  # pyright: ignore[reportAttributeAccessIssue]


def damage_is_passed_over(start: int, checkpoints: Path) -> None:
    """An older checkpoint is used instead of a damaged one."""

    def load(self: Any) -> Any:
        for path in sorted((checkpoints / "local").glob("chk-*.ckpt"), reverse=True):
            try:
                checkpoint, self._entries = read_checkpoint(path)
                return checkpoint
            except CorruptData:
                path.unlink()
        return None

    FileCheckpoints.load = load


def checkpoint_is_moved_to_be_read(start: int, checkpoints: Path) -> None:
    """A recovery that cannot be interrupted safely."""
    load = FileCheckpoints.load

    def moving(self: Any) -> Any:
        found = {path: path.read_bytes() for path in (checkpoints / "local").glob("chk-*.ckpt")}
        loaded = load(self)
        # The kill comes when the first one is removed: the others must not be visible by then.
        for number, path in enumerate(sorted(found, reverse=True)):
            if number:
                path.rename(checkpoints / path.name)
        for path in found:
            path.unlink(missing_ok=True)
        time.sleep(0.2)
        for path, data in found.items():
            path.write_bytes(data)
        return loaded

    FileCheckpoints.load = moving


def calls_are_forgotten(start: int, checkpoints: Path) -> None:
    """A restarted job does not read the durable call log."""
    for path in (checkpoints / "calls").glob("*"):
        path.unlink()


def a_channel_goes_back(start: int, checkpoints: Path) -> None:
    """One of several channels starts one record too early after a restart."""
    init = tasks.SourceTask.__init__

    def back(self: Any, *args: Any, **more: Any) -> None:
        if start > 1 and more["channel"] == 1 and more["position"][0] > 2:
            index, step = more["position"]
            more["position"] = [index - step, step]
        init(self, *args, **more)

    tasks.SourceTask.__init__ = back


def one_answer_for_all(start: int, checkpoints: Path) -> None:
    """Questions are not distinguished well enough."""

    def question_name(directory: Path, call_id: str) -> str:
        return "0" * 32

    def settled(self: Any, call_id: str) -> None:
        """The answer is kept for the next one: no two questions need to be open at the same time."""

    question_files.question_name = asking.question_name = question_name
    asking.FileApprovals.settled = settled


def no_owner(start: int, checkpoints: Path) -> None:
    """Locks never block anyone."""

    def locked(*_: Any) -> None:
        pass

    fcntl.flock = fcntl.lockf = locked


def impatient(start: int, checkpoints: Path) -> None:
    """Times out when the machine is slow."""

    def watch() -> None:
        while True:
            before = time.thread_time(), time.monotonic()
            while time.thread_time() - before[0] < 0.02:
                pass
            if time.monotonic() - before[1] > 0.05:
                os._exit(3)
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()


WITHOUT_FAULTS = {keys_by_checksum.__name__, one_answer_for_all.__name__}
"""Bugs that are visible in a run without faults."""
PLANTS: dict[str, Callable[[int, Path], None]] = {
    plant.__name__: plant
    for plant in (
        keys_by_checksum,
        prepared_is_forgotten,
        damage_is_passed_over,
        checkpoint_is_moved_to_be_read,
        calls_are_forgotten,
        a_channel_goes_back,
        one_answer_for_all,
        no_owner,
        impatient,
    )
}
