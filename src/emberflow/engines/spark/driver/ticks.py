"""When a micro-batch must run without input: a parked action has ended or was lost, or a timer is due.

Called by the first source's planner on the driver. While nothing is parked and no timer is set, no batch runs. While
calls are in flight in the background, one runs occasionally all the same, because Spark ends Python workers that were
idle for a minute, and with them their calls.
"""

from __future__ import annotations

import time

from emberflow.durable.log import StoredCallLog

_KEEP_ALIVE_S = 10.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0


class Ticks:
    def __init__(self, log: StoredCallLog) -> None:
        self._log = log
        self._last_s = 0.0
        self._served: set[str] = set()
        self._served_ms: int | None = None
        """A due time for which a batch was already run."""
        self._pause_s = 0.0

    def due(self) -> bool:
        """Whether a batch should run now."""
        log = self._log
        log.follow()
        now_s = time.monotonic()
        parked = log.parked()
        ended = {action for action in parked if not log.running(action)}
        at_ms = log.next_due_ms()
        timer = at_ms is not None and at_ms != self._served_ms and at_ms <= time.time() * 1000
        if not ended and not timer:
            self._pause_s = 0.0
            if not parked or now_s - self._last_s < _KEEP_ALIVE_S:
                self._served = set()
                return False
        elif ended and not timer and ended <= self._served:
            # The batch before should have taken these. If it did not, the pause grows with each batch, not with each
            # look: the planner looks about every 10 ms.
            if now_s - self._last_s < self._pause_s:
                return False
            self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * 2)
        else:
            self._pause_s = _FIRST_PAUSE_S
        self._served = ended
        self._served_ms = at_ms if timer else self._served_ms
        self._last_s = now_s
        return True
