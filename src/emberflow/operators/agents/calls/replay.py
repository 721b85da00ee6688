"""Whether an action that is repeated makes the durable calls that it made before. Shared by all calls of one action."""

from __future__ import annotations

from emberflow.errors import ReplayMismatch


class Replay:
    __slots__ = ("mismatch",)

    def __init__(self) -> None:
        self.mismatch: ReplayMismatch | None = None

    def differs(self, how: str) -> ReplayMismatch:
        """The error. Whatever the action does about it, it makes no further calls, and fails."""
        self.mismatch = ReplayMismatch(
            how,
            cause="an action must make the same durable calls in the same order when it is repeated",
            way_out="if the program was changed on purpose, set the option 'on-replay-mismatch' to 'restart': the calls of "
            "this run from here on are made again; otherwise restore the old code until such runs are done",
        )
        return self.mismatch

    def check(self) -> None:
        if self.mismatch is not None:
            raise self.mismatch
