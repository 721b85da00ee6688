"""The simplest custom source: any function that returns an iterable.

Use it if the iterable cannot be split into channels or started in the middle. Otherwise subclass `Source`; this is a
complete one, over the pages of some service:

    class PageSource(Source[str]):
        def __init__(self, url: str, pages: int) -> None:
            self._url, self._pages = url, pages            # only picklable values

        def start(self, parallelism: int) -> list[Position]:
            return [0]                                     # one position per channel: anything JSON-serializable

        def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[str]]:
            for page in range(position, self._pages):      # open connections here, not in __init__
                yield Chunk(fetch(self._url, page), page + 1, end=page + 1 == self._pages)

It must return the same records when it is read again from an earlier position. With `plan`, Spark also distributes
the reading over its workers; without it the driver reads.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, SourceFailed, describe_cause

_QUEUE_SIZE = 4096
_STOP_CHECK_S = 0.2

T = TypeVar("T")


class IterableSource(Source[T]):
    """One channel over `make_iterable()`, which must return the same values each time it is called.

    A position is the number of values before it: after a restart a new iterable is created and that many values are
    skipped. With `bounded=False` the iterable may block for its next value: it is then read on a separate thread.
    """

    def __init__(self, make_iterable: Callable[[], Iterable[T]], bounded: bool = True) -> None:
        if not callable(make_iterable):
            raise InvalidArgument(
                f"an iterable source needs a function that returns an iterable, not {type(make_iterable).__name__}",
                way_out="write IterableSource(lambda: values); a new iterable is created for every restart",
            )
        self._make_iterable = make_iterable
        self.bounded = bounded
        self._live: _Live | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}

    def describe(self) -> str:
        return (
            f"Iterable {getattr(self._make_iterable, '__qualname__', type(self._make_iterable).__qualname__)}"
        )

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        live = self._take_live(position)
        failed = False
        try:
            while True:
                values, end, error = live.take(max(limit, 1))
                live.position += len(values)
                if error is not None:
                    # After an error, continue with a new iterable.
                    failed = True
                    if values:
                        yield Chunk(values, live.position)
                    if isinstance(error, SourceFailed):
                        raise error
                    raise _iterable_failed(live.position, error) from error
                if not (values or end):
                    return
                yield Chunk(values, live.position, end=end)
                if end:
                    return
        finally:
            self._give_back(None if failed else live)
            if failed:
                live.close()

    def read_again(self, channel: int, position: Position, stop: Position, limit: int) -> Iterator[Chunk[T]]:
        """Reads from a new iterable and blocks for it: how much of it has arrived by now does not matter."""
        live = _Direct(self._make_iterable, position)
        while live.position < stop:
            values, end, error = live.take(min(max(limit, 1), stop - live.position))
            live.position += len(values)
            if error is not None:
                if isinstance(error, SourceFailed):
                    raise error
                raise _iterable_failed(live.position, error) from error
            if end and live.position < stop:
                raise _too_short(live.position, stop)
            yield Chunk(values, live.position)

    def _take_live(self, position: int) -> _Live:
        """The open iterable if it is at `position`, otherwise a new one advanced there. It is used by one reader at a time:
        the source may occur twice in a program."""
        live, self._live = self._live, None
        if live is not None and live.position == position:
            return live
        if live is not None:
            live.close()
        if self.bounded:
            return _Direct(self._make_iterable, position)
        return _Threaded(self._make_iterable, position)

    def _give_back(self, live: _Live | None) -> None:
        if self._live is not None:
            self._live.close()
        self._live = live


Taken = tuple[list[Any], bool, Exception | None]


def _open_at(make_iterable: Callable[[], Iterable[Any]], position: int) -> Iterator[Any]:
    values = iter(make_iterable())
    skipped = sum(1 for _ in islice(values, position))
    if skipped < position:
        raise _too_short(skipped, position)
    return values


def _too_short(found: int, read: int) -> SourceFailed:
    return SourceFailed(
        f"the iterable has only {found} values, but {read} were read from it before",
        way_out="make make_iterable() return the same values each time; do not change the list in between",
    )


class _Direct:
    """Reads values on the calling thread."""

    def __init__(self, make_iterable: Callable[[], Iterable[Any]], position: int) -> None:
        self.position = position
        self._make_iterable = make_iterable
        self._values: Iterator[Any] | None = None

    def take(self, limit: int) -> Taken:
        values: list[Any] = []
        try:
            if self._values is None:
                self._values = _open_at(self._make_iterable, self.position)
            values.extend(islice(self._values, limit))
        except Exception as error:
            return values, False, error
        return values, len(values) < limit, None

    def close(self) -> None:
        """Nothing to stop."""


class _Threaded:
    """Reads values on a thread: a blocking iterable must not block the engine."""

    def __init__(self, make_iterable: Callable[[], Iterable[Any]], position: int) -> None:
        self.position = position
        self.stop = threading.Event()
        self._ended = False
        self._queue: queue.Queue[Taken] = queue.Queue(_QUEUE_SIZE)
        # The thread holds the queue, not this object: it stops when the reader is garbage-collected.
        weakref.finalize(self, self.stop.set)
        threading.Thread(
            target=_feed,
            args=(make_iterable, position, self._queue, self.stop),
            name="emberflow-iterable-source",
            daemon=True,
        ).start()

    def take(self, limit: int) -> Taken:
        values: list[Any] = []
        while len(values) < limit and not self._ended:
            try:
                value, end, error = self._queue.get_nowait()
            except queue.Empty:
                break
            values += value
            if error is not None:
                return values, False, error
            self._ended = end
        return values, self._ended, None

    def close(self) -> None:
        self.stop.set()


_Live = _Direct | _Threaded


def _feed(
    make_iterable: Callable[[], Iterable[Any]],
    position: int,
    target: queue.Queue[Taken],
    stop: threading.Event,
) -> None:
    def put(item: Taken) -> bool:
        while not stop.is_set():
            try:
                target.put(item, timeout=_STOP_CHECK_S)
            except queue.Full:
                continue
            return True
        return False

    try:
        for value in _open_at(make_iterable, position):
            if not put(([value], False, None)):
                return
    except Exception as error:
        put(([], False, error))
    else:
        put(([], True, None))


def _iterable_failed(position: int, error: Exception) -> SourceFailed:
    return SourceFailed(
        f"the iterable failed after its value number {position}",
        cause=describe_cause(error),
        way_out="fix what make_iterable() returns; after a restart reading continues after that value",
    )
