"""The contract of a store of durable calls. The log (`durable/log.py`) decides what records mean and how long they
are kept; a store keeps bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CallStore(Protocol):
    """The records of all processes of one job. Each process appends to its own part and reads all others.

    Used from several threads of the process, one at a time. Raises `CallLogFailed` on failures.
    """

    owner: str
    """Identifies this process and its part; never reused by another process."""
    pause_s: float
    """The polling interval: reading may cost a request, or money."""

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        """Appends all records in this order. With `sync`, they are durable on return; without, other processes of the job
        see them soon, and a crash of the machine may lose them. A crash in between leaves a prefix of whole records."""
        ...

    def publish(self) -> None:
        """Makes everything appended without `sync` visible to other processes."""
        ...

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        """What other owners appended since the last call: (owner, records), in each owner's order. Records moved by
        `replace` may be returned again; none is missed because it was moved during the call, by `replace` or from one
        owner to another that removes the first one afterwards."""
        ...

    def replace(self, records: Sequence[bytes]) -> None:
        """Durably replaces everything this owner has appended. A crash leaves the old records, the new ones or both, never
        neither."""
        ...

    @property
    def size(self) -> int:
        """The size of this owner's part in bytes."""
        ...

    def owners(self) -> list[str]:
        """The other owners that have a part."""
        ...

    def alive(self, owner: str) -> bool:
        """Whether the process is believed to be running: it holds its lease."""
        ...

    def remove(self, owner: str) -> None:
        """Removes the part of a process that has ended; does nothing if it does not exist."""
        ...

    def close(self) -> None:
        """Releases the lease; the part is kept."""
        ...
