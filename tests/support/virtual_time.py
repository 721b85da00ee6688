"""An event loop whose clock jumps to the next due event, so that minutes of waiting take no time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        selector: Any = self._selector  # pyright: ignore[reportAttributeAccessIssue]
        select = selector.select

        def jump(timeout: float | None = None) -> Any:
            if timeout is None:
                raise RuntimeError("everybody waits, and nothing is due: a hang")
            self.now += max(timeout, 0.0)
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return self.now


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
