"""The files of a call log in a directory: their names, and how to read those of other processes and detect damage.

Used by `file_store.py` only, which writes them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from emberflow.durable.stores.framing import End, Parsed, parse_frames, parse_part
from emberflow.durable.stores.moving import until_whole
from emberflow.durable.stores.synced_lengths import SyncedLengths, damage, read_lengths
from emberflow.errors import CallLogFailed, CorruptData, describe_cause

PART = ".calls"
LEASE = ".lease"
_GONE = (errno.ENOENT, errno.ESTALE)

IsAlive = Callable[[str], bool]


class PartFiles:
    """The files in one directory, as seen by the process `owner`."""

    def __init__(self, directory: Path, owner: str) -> None:
        self._directory = directory
        self._owner = owner
        self._read_to: dict[Path, tuple[int, int]] = {}
        """file of another owner -> number of bytes read, version of its format"""
        self._known: set[str] = set()
        """Owners whose files have been compared with their leases."""

    # names

    def part(self, owner: str, number: int) -> Path:
        return self._directory / f"{owner}.{number:06d}{PART}"

    def lease(self, owner: str) -> Path:
        return self._directory / f"{owner}{LEASE}"

    @property
    def marker(self) -> Path:
        """Next to the directory: records that a log exists, so that a lost log is not mistaken for one never written."""
        return self._directory.with_name(f"{self._directory.name}.json")

    def parts(self) -> list[Path]:
        """A file that is moved during the listing is shown in one of its places."""
        found = self._list_once(PART)
        while not found <= (again := self._list_once(PART)):
            found = again
        return sorted(self._directory / name for name in again)

    def owners(self) -> set[str]:
        return {owner_of(path) for path in self.parts()}

    def _list_once(self, ending: str) -> set[str]:
        try:
            with os.scandir(self._directory) as entries:
                return {entry.name for entry in entries if entry.name.endswith(ending)}
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise self.failed("cannot be read", error) from error

    # reading

    def read_new(self, alive: IsAlive) -> list[tuple[str, list[bytes]]]:
        found: list[tuple[str, list[bytes]]] = []
        before = dict(self._read_to)
        try:
            # Missing files were replaced or taken over: their records are in a file that was not listed yet.
            until_whole(lambda: self._read_listed(found, alive), str(self._directory))
        except BaseException:
            # What was read is not returned, so it must be read again.
            self._read_to = before
            raise
        return found

    def _read_listed(self, found: list[tuple[str, list[bytes]]], alive: IsAlive) -> bool:
        """Adds the new records in the files of one listing; False if one of them has disappeared."""
        # Leases first: files that a lease lists as synced are in every later listing, as long as the lease lists them.
        leases = {path: read_lengths(path) for path in self._new_leases()}
        paths = self.parts()
        complete = self._all_there(leases, set(paths))
        for path in paths:
            if owner_of(path) == self._owner:
                continue
            try:
                records = self._read(path, alive)
            except OSError as error:
                if error.errno not in _GONE:
                    raise self.failed("cannot be read", error) from error
                complete = False
                continue
            if records:
                found.append((owner_of(path), records))
        for gone in self._read_to.keys() - set(paths):
            del self._read_to[gone]
        if complete:
            self._known |= {owner_of(path) for path in (*paths, *leases)}
        return complete

    def _read(self, path: Path, alive: IsAlive) -> list[bytes]:
        """The new records in a file of another owner. Raises OSError and CorruptData."""
        first_sight = path not in self._read_to
        start, version = self._read_to.get(path, (0, 0))
        size = path.stat().st_size
        if size == start and not first_sight:
            return []
        parsed = None if first_sight or size < start else _parsed_from(path, start, version)[1]
        if parsed is None or parsed.end is End.BAD:
            parsed = self._checked(path, start, version, alive)
        self._read_to[path] = start + parsed.length, parsed.version
        return parsed.records

    # checking

    def check(self, owner: str, alive: IsAlive) -> list[Path]:
        """The files of an owner that has ended; raises CorruptData if anything that was synced cannot be read."""
        lease = self.lease(owner)
        known = read_lengths(lease)
        paths = [path for path in self.parts() if owner_of(path) == owner]
        self._all_there({lease: known}, set(paths))
        for path in paths:
            try:
                self._checked(path, *self._read_to.get(path, (0, 0)), alive)
            except OSError as error:
                if error.errno not in _GONE:
                    raise self.failed("cannot be read", error) from error
        return paths

    def _checked(self, path: Path, start: int, version: int, alive: IsAlive) -> Parsed:
        """Reads a file whose end may be damaged. A live owner may be in the middle of a write, as long as it has not
        reported the data as synced."""
        owner, number = owner_of(path), _number_of(path)
        # In this order: what a process wrote before it ended, or before it reported it as synced, is read afterwards.
        known, is_alive = read_lengths(self.lease(owner)), alive(owner)
        data, parsed = _parsed_from(path, start, version)
        cause = damage(data, start, parsed, number, known)
        synced = 0 if known is None else known.parts.get(number, 0)
        if cause and not (is_alive and start + parsed.length >= synced):
            raise self._damaged(path, cause)
        return parsed

    def _new_leases(self) -> list[Path]:
        names = self._list_once(LEASE)
        if not names and not self._directory.is_dir() and self.marker.exists():
            raise CorruptData(
                f"the durable call log {self._directory} is missing",
                cause=f"{self.marker.name} says that it was written",
                way_out=f"restore it from a backup; or delete {self.marker}: the job then continues, and calls whose answers"
                " were recorded only there are made again",
            )
        owners = {name.removesuffix(LEASE) for name in names if not name.startswith(".")}
        return [self.lease(owner) for owner in owners - self._known - {self._owner}]

    def _all_there(self, leases: dict[Path, SyncedLengths | None], paths: set[Path]) -> bool:
        """Whether every file that the leases list exists; False if the leases have changed in the meantime."""
        for lease, known in leases.items():
            for number, length in () if known is None else known.parts.items():
                path = self.part(owner_of(lease), number)
                if not length or path in paths:
                    continue
                if read_lengths(lease) != known:
                    return False
                raise self._damaged(path, f"it is missing; {length:,} bytes of it were on disk")
        return True

    # errors

    def _damaged(self, path: Path, cause: str) -> CorruptData:
        return CorruptData(
            f"the durable call log is corrupted: {path}",
            cause=cause,
            way_out=f"restore the file from a backup; or move every file {owner_of(path)}.* out of {self._directory}: the"
            " job then continues, and calls whose answers were recorded only there are made again",
            committed="nothing was removed",
        )

    def failed(self, what: str, error: OSError) -> CallLogFailed:
        return CallLogFailed(
            f"the durable call log in {self._directory} {what}",
            cause=describe_cause(error),
            way_out="free space or repair the disk, then start the job again",
            committed="calls whose answer was not written are made again",
        )


def owner_of(path: Path) -> str:
    return path.name.partition(".")[0]


def _number_of(path: Path) -> int:
    number = path.name.removesuffix(PART).rpartition(".")[2]
    return int(number) if number.isdigit() else -1


def _parsed_from(path: Path, start: int, version: int) -> tuple[bytes, Parsed]:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    return data, parse_frames(data, version) if start else parse_part(data)
