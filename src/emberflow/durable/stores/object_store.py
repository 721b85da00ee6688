"""The store of durable calls as objects of a bucket, or of any file system that pyarrow supports.

Objects cannot be appended to, so each group of records is an object: `<owner>/<generation>/<number>`. Replacing starts a
new generation and then drops the previous one, which takes one request in buckets. The lease is an object that is
rewritten regularly; only whether it changes counts, so no two clocks are compared.
"""

from __future__ import annotations

import os
import struct
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from emberflow.durable.stores.framing import End, framed, parse_frames
from emberflow.durable.stores.moving import until_whole
from emberflow.durable.stores.object_files import Listed, ObjectFiles
from emberflow.errors import CallLogFailed, CorruptData

_KIND = b"EFCO"
_VERSION = 2
_FRAMES_OF = {1: 2, 2: 3}
"""version of an object -> version of its frames"""
_HEADER = struct.Struct("<4sBI")
_BEAT_S = 5.0
_LEASE_S = 20.0
_HELD_S = 0.5
_HELD_BYTES = 4 * 1024 * 1024
_READERS = 8
# Listings cost per object: added to the size, so that a part of many small objects is soon replaced by a large one.
_WEIGHT_OF_OBJECT = 8 * 1024
# How long the leases listed by `owners` are reused: callers usually check each of them right after that.
_SEEN_S = 1.0
_LEASE = "lease"


class ObjectCallStore:
    pause_s = _HELD_S

    def __init__(
        self, uri: str, owner: str | None = None, *, beat_s: float = _BEAT_S, lease_s: float = _LEASE_S
    ) -> None:
        self.owner = owner or f"{os.getpid()}-{uuid.uuid4().hex}"
        self._files = ObjectFiles(uri)
        self._beat_s = beat_s
        self._lease_s = lease_s
        # Holding it allows writing; pending appends are written by a thread of the store.
        self._writing = threading.Lock()
        self._oldest = 0
        self._generation = 0
        self._number = 0
        self._written: list[str] = []
        self._held: list[bytes] = []
        self._size = 0
        self._failing = False
        self._beats = 0
        self._lost = False
        self._closed = threading.Event()
        self._has_held = threading.Event()
        self._threads: list[threading.Thread] = []
        # Of other owners, by (owner, generation): the object to read next, and how many of its records were already read.
        self._read_to: dict[tuple[str, int], tuple[int, int]] = {}
        self._leases: dict[str, tuple[Listed, float]] = {}
        self._just_seen: dict[str, Listed] = {}
        self._seen_s = 0.0

    # writing

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        added = [framed(record) for record in records]
        with self._writing:
            if not added and not self._held:
                return
            if sync or self._failing or sum(map(len, self._held)) > _HELD_BYTES:
                self._write([*self._held, *added])
            else:
                self._take_lease()
                self._held += added
                self._has_held.set()
            self._size += sum(map(len, added))

    def publish(self) -> None:
        with self._writing:
            if self._held:
                self._write(self._held)

    def replace(self, records: Sequence[bytes]) -> None:
        with self._writing:
            if not self._threads and not records:
                return
            self._generation, self._number, self._written = self._generation + 1, 0, []
            added = [framed(record) for record in records]
            self._write(added)
            self._size = sum(map(len, added))
            try:
                # Removed only now: a crash must leave the old objects or the new ones.
                while self._oldest < self._generation:
                    self._files.remove_folder(f"{self.owner}/{self._oldest:09d}")
                    self._oldest += 1
            except CallLogFailed:
                pass  # Retried the next time.

    def _write(self, added: list[bytes]) -> None:
        """Writes one object with these records, which include or supersede all pending ones. The caller holds the lock."""
        self._take_lease()
        if self._lost:
            raise CallLogFailed(
                "another process of the job declared this one dead and removed its durable calls",
                way_out="start the job again; if it happens often, find out why this process or the bucket stalls",
                committed="calls whose answer was not written are made again",
            )
        if added:
            path = _path(self.owner, self._generation, self._number)
            # Never reused, even if this fails: the object may exist all the same, and may have been read.
            self._number += 1
            self._files.put(path, _HEADER.pack(_KIND, _VERSION, len(added)) + b"".join(added))
            self._written.append(path)
        self._held = []
        self._failing = False

    def _write_held(self) -> None:
        while True:
            self._has_held.wait()
            if self._closed.wait(self._beat_s if self._failing else _HELD_S):
                return
            with self._writing:
                try:
                    if self._held:
                        self._write(self._held)
                    self._has_held.clear()
                except CallLogFailed:
                    # Retried soon; an append before that succeeds fails, too.
                    self._failing = True

    @property
    def size(self) -> int:
        return self._size + _WEIGHT_OF_OBJECT * max(0, len(self._written) - 1)

    def close(self) -> None:
        self._closed.set()
        self._has_held.set()
        for thread in self._threads:
            thread.join(self._lease_s)
        if not self._threads:
            return
        try:
            with self._writing:
                if self._held:
                    self._write(self._held)
        finally:
            try:
                self._files.remove(f"{self.owner}/{_LEASE}")
            except CallLogFailed:
                pass  # The heartbeat has stopped, so the lease expires.

    # reading

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        found: dict[str, list[bytes]] = {}
        # Missing objects were replaced or taken over: their records are in an object that was not listed yet.
        before = dict(self._read_to)
        try:
            until_whole(lambda: self._read_listed(found), self._files.place)
        except BaseException:
            # What was read is not returned, so it must be read again.
            self._read_to = before
            raise
        return [(owner, records) for owner, records in found.items() if records]

    def _read_listed(self, found: dict[str, list[bytes]]) -> bool:
        """Adds the new records in the objects of one listing; False if one of them has disappeared."""
        wanted = self._unread()
        if not wanted:
            return True
        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(self._files.get, [_path(*item[:3]) for item in wanted]))
        for (owner, generation, number, taken), content in zip(wanted, contents, strict=True):
            if content is None:
                continue
            records, whole = self._parsed(_path(owner, generation, number), content)
            # An empty object is still being written, or its owner died or gave up in between: while it is the last one,
            # it is read again.
            self._read_to[owner, generation] = (number + 1, 0) if whole else (number, len(records))
            found.setdefault(owner, []).extend(records[taken:])
        return None not in contents

    def _parsed(self, path: str, content: bytes) -> tuple[list[bytes], bool]:
        """The records of an object, and whether it is complete. Objects appear atomically, so any other is corrupted."""
        if not content:
            return [], False
        cause = ""
        if len(content) < _HEADER.size:
            cause = f"it has {len(content)} bytes"
        else:
            kind, version, count = _HEADER.unpack_from(content)
            if kind != _KIND or version not in _FRAMES_OF:
                cause = f"it begins with {content[:5]!r}, which no version up to this one writes"
            else:
                parsed = parse_frames(content, _FRAMES_OF[version], _HEADER.size)
                if parsed.end is End.CLEAN and len(parsed.records) == count:
                    return parsed.records, True
                if version == 1 and parsed.end is not End.BAD:
                    # The previous version did not always write objects atomically.
                    return parsed.records, False
                cause = parsed.cause or f"it contains {len(parsed.records)} of {count} records"
        owner = path.partition("/")[0]
        raise CorruptData(
            f"the durable call log is corrupted: {self._files.place}/{path}",
            cause=cause,
            way_out="restore the object from a backup, or name a folder in call_store that nothing else writes to; or move"
            f" every object below {owner}/ elsewhere: the job then continues, and calls whose answers were recorded only"
            " there are made again",
            committed="nothing was removed",
        )

    def _unread(self) -> list[tuple[str, int, int, int]]:
        """(owner, generation, number, records already read) of the new objects in one listing."""
        numbers: dict[tuple[str, int], list[int]] = {}
        for listed in self._files.list():
            owner, *rest = listed.path.split("/")
            if owner == self.owner:
                continue
            if rest == [_LEASE]:
                self._unchanged_s(owner, listed)
            elif len(rest) == 2 and rest[1].isdigit():
                numbers.setdefault((owner, int(rest[0])), []).append(int(rest[1]))
        self._read_to = {part: at for part, at in self._read_to.items() if part in numbers}
        wanted: list[tuple[str, int, int, int]] = []
        for (owner, generation), present in sorted(numbers.items()):
            first, taken = self._read_to.get((owner, generation), (0, 0))
            for number in sorted(present):
                if number >= first:
                    wanted.append((owner, generation, number, taken if number == first else 0))
        return wanted

    def owners(self) -> list[str]:
        found = {listed.path: listed for listed in self._files.list()}
        owners = sorted({path.partition("/")[0] for path in found} - {self.owner})
        leases = {owner: found.get(f"{owner}/{_LEASE}") for owner in owners}
        self._just_seen = {owner: lease for owner, lease in leases.items() if lease is not None}
        self._seen_s = time.monotonic()
        return owners

    def remove(self, owner: str) -> None:
        self._files.remove_folder(owner)
        self._leases.pop(owner, None)
        self._just_seen.pop(owner, None)

    # leases

    def alive(self, owner: str) -> bool:
        if owner == self.owner:
            return not self._closed.is_set()
        listed = self._just_seen.pop(owner, None)
        if listed is None or time.monotonic() - self._seen_s > _SEEN_S:
            listed = self._files.look(f"{owner}/{_LEASE}")
        return listed is not None and self._unchanged_s(owner, listed) < self._lease_s

    def _unchanged_s(self, owner: str, lease: Listed) -> float:
        """For how long the lease has not changed, by this process's own clock."""
        now_s = time.monotonic()
        seen, since_s = self._leases.get(owner, (None, now_s))
        if seen != lease:
            since_s = now_s
            self._leases[owner] = lease, since_s
        return now_s - since_s

    def _take_lease(self) -> None:
        if not self._threads:
            self._beat()
            for work in (self._keep_lease, self._write_held):
                thread = threading.Thread(target=work, name="emberflow-call-store", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _beat(self) -> None:
        # Vary the length, so that a listing is enough to detect the change.
        self._beats += 1
        self._files.overwrite(f"{self.owner}/{_LEASE}", b"%d " % self._beats + b"." * (self._beats % 100))

    def _keep_lease(self) -> None:
        while not self._closed.wait(self._beat_s) and not self._lost:
            written = self._written
            expected = {f"{self.owner}/{_LEASE}", *written}
            try:
                present = {listed.path for listed in self._files.list(self.owner)}
                # If the part was replaced in between, objects are missing for a good reason.
                if expected <= present or written is not self._written:
                    self._beat()
                else:
                    self._lost = True
            except CallLogFailed:
                continue


def _path(owner: str, generation: int, number: int) -> str:
    return f"{owner}/{generation:09d}/{number:09d}"
