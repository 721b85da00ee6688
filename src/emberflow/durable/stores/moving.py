"""Reading while other processes move data: retry until nothing has disappeared between listing and reading."""

from __future__ import annotations

import time
from collections.abc import Callable

from emberflow.errors import CallLogFailed

PATIENCE_S = 30.0
_AT_ONCE = 2
_LONGEST_PAUSE_S = 0.5


def until_whole(
    read: Callable[[], bool],
    where: str,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Repeats `read` until it reports that everything listed was found. A listing that keeps showing missing data is an
    error: the answers in it cannot be found, and calls would be made again."""
    give_up_s = time.monotonic() + patience_s
    rounds = 0
    while not read():
        rounds += 1
        if time.monotonic() > give_up_s:
            raise CallLogFailed(
                f"the durable call log in {where} lists parts that are not there",
                cause=f"{rounds} times within {patience_s:g} s",
                way_out="remove what cannot be read (such as a broken link), then start the job again",
                committed="calls whose answer was recorded are not made again once it can be read",
            )
        if rounds >= _AT_ONCE:
            sleep(min(_LONGEST_PAUSE_S, 0.001 * 2 ** min(rounds, 20)))
