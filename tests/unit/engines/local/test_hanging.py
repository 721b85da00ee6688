"""The event loop of a local job ends, whatever its coroutines do when they are canceled."""

from __future__ import annotations

import asyncio
import threading
import time

from emberflow.engines.local.hanging import run_to_its_end

HANG_GUARD_S = 120


def test_a_coroutine_that_suppresses_its_cancellation_is_abandoned() -> None:
    met: list[str] = []

    async def stubborn() -> None:
        give_up = time.monotonic() + 2 * HANG_GUARD_S
        while time.monotonic() < give_up:
            try:
                await asyncio.sleep(HANG_GUARD_S)
            except asyncio.CancelledError:
                met.append("cancelled")

    async def main() -> str:
        met.append(asyncio.create_task(stubborn()).get_name())
        await asyncio.sleep(0)
        return "done"

    found: list[str] = []
    # In a separate thread: without the time limit it would wait for the coroutine.
    thread = threading.Thread(target=lambda: found.append(run_to_its_end(main(), 0.05)), daemon=True)
    thread.start()
    thread.join(HANG_GUARD_S)
    assert found == ["done"]
    assert met[-1] == "cancelled"
