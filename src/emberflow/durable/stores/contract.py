"""What a store of durable calls has to do. The log (`durable/log.py`) decides what records mean and how long they
are kept; a store keeps bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CallStore(Protocol):
    """The records of all processes of one job. Each process appends to a part of its own and reads all others'.

    Used from several threads of the process, one at a time. Failures are raised as `CallLogFailed`.
    """

    owner: str
    """Names this process and its part; never used by another process again."""
    pause_s: float
    """How long whoever looks again and again lets pass in between: a look may cost a request, or money."""

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        """All of them, in this order, durable when it returns if `sync`; without, other processes of the job see them
        soon, and a crash of the machine may lose them. A crash in the middle leaves a beginning of whole records."""
        ...

    def publish(self) -> None:
        """What was appended without `sync` is seen by other processes when it returns."""
        ...

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        """What other owners appended since the last time: (owner, records), each owner's in order. Records that were
        moved by `replace` may come again; none is missed because it was moved meanwhile, by `replace` or from one owner
        to another that removes the first one afterwards."""
        ...

    def replace(self, records: Sequence[bytes]) -> None:
        """What this owner has appended so far gives way to these, durably. A crash leaves the old ones, the new ones or
        both, never neither."""
        ...

    @property
    def size(self) -> int:
        """Bytes of this owner's part."""
        ...

    def owners(self) -> list[str]:
        """Other owners that have a part."""
        ...

    def alive(self, owner: str) -> bool:
        """Whether the process still runs, as far as can be told: it holds its lease."""
        ...

    def remove(self, owner: str) -> None:
        """Drops the part of a process that has ended; nothing happens if it is gone already."""
        ...

    def close(self) -> None:
        """Gives up the lease; the part stays."""
        ...
