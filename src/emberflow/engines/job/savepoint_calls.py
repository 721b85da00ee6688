"""The durable call log in savepoints: copied from any store into a savepoint, and from a savepoint into any store."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from emberflow.durable.location import CallStoreLocation, call_store_option
from emberflow.durable.records import carried_over, for_another_job, from_stored, to_stored
from emberflow.durable.redaction import shown
from emberflow.durable.stores.contract import CallStore
from emberflow.durable.stores.framing import NEWEST, End, as_part, parse_part
from emberflow.durable.stores.part_files import PART
from emberflow.errors import CheckpointUnusable
from emberflow.events.codecs import decode, encode
from emberflow.events.stored_files import corrupt, read_json, write_json
from emberflow.plan.job_contract import JobConfig
from emberflow.savepoints.form import CALLS_FOLDER, damaged
from emberflow.savepoints.restore import SavepointStart
from emberflow.savepoints.writer import SavepointWriter

PLACE = "call-store.json"
_FORMAT = 1
_LOST = "delete it and give the job's option call_store in full: --call-store ADDRESS"
_AT_ONCE = 1_000
"""Records written together: a database accepts only so much in one statement."""


class CallsCopy:
    """A copy of a job's call log, on its way into a savepoint; the job may be running. The copy owns the store and closes
    it."""

    def __init__(self, store: CallStore) -> None:
        self._store = store
        self._parts: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def read(self) -> None:
        """Reads everything recorded so far. Repeated calls read only what is new; records that the job has dropped since
        stay in the copy and do no harm."""
        self._parts += [as_part(records) for _, records in self._store.read_new()]

    def into(self, writer: SavepointWriter) -> None:
        for number, data in enumerate(self._parts):
            writer.calls(f"{number:06d}{PART}", data)


def place_calls(start: SavepointStart, location: CallStoreLocation) -> None:
    """Continues the durable call log in the job's own store: recorded answers are not requested again."""
    records = [
        encode(to_stored(for_another_job(record)))
        for name, data in start.reader.call_files()
        if name.endswith(PART)
        for stored in _whole(data, start.reader.path / CALLS_FOLDER / name)
        for record in [from_stored(decode(stored))]
        if carried_over(record, start.first_epoch)
    ]
    if records:
        store = location.open_calls()
        try:
            for first in range(0, len(records), _AT_ONCE):
                store.append(records[first : first + _AT_ONCE], sync=True)
        finally:
            store.close()


def _whole(data: bytes, path: Path) -> list[bytes]:
    """The records of a part in a savepoint, which is written atomically."""
    parsed = parse_part(data)
    # A copy made by the previous version may contain the truncated tail of a file.
    if parsed.end is End.CLEAN or (parsed.end is End.PARTIAL and parsed.version < NEWEST):
        return parsed.records
    raise damaged(str(path))


# the location of the call log of a job that is not running


def note_place(config: JobConfig) -> None:
    """Stores the location of the job's call log if it is not in its checkpoint directory; never a password."""
    address = call_store_option(config)
    if config.checkpoint_dir is None:
        return
    path = Path(config.checkpoint_dir) / PLACE
    if not address:
        path.unlink(missing_ok=True)
        return
    if "://" not in address:
        address = str(Path(address).expanduser().resolve())
    body = {"format": _FORMAT, "call_store": shown(address), "whole": shown(address) == address}
    write_json(path, body)


def noted_place(home: Path) -> str:
    """The address of the job's call log; empty for its checkpoint directory. Raises CheckpointUnusable if only the job
    itself knows the full address."""
    path = home / PLACE
    try:
        body = read_json(path, newest=_FORMAT, way_out=_LOST)
    except FileNotFoundError:
        return ""
    address, whole = body.get("call_store"), body.get("whole")
    if not isinstance(address, str) or not isinstance(whole, bool):
        raise corrupt(path, "it does not say where the calls are", _LOST)
    if not whole:
        raise CheckpointUnusable(
            f"the job in {home} stores its durable calls in {address}, and its checkpoint directory contains no password",
            way_out="give the job's option call_store in full: --call-store ADDRESS",
            committed="no savepoint was created; without the calls, runs in flight would make theirs again",
        )
    return address
