"""The shortest custom source: any function that returns an iterable.

Where the iterable cannot be cut into channels or started in its middle, this is all there is to write. Where it
can, derive from `Source`; this is a complete one, over the pages of some service:

    class PageSource(Source):
        def __init__(self, url: str, pages: int) -> None:
            self._url, self._pages = url, pages            # only what pickle can carry

        def channels(self, parallelism: int) -> int:
            return 1

        def start(self, channel: int) -> Position:
            return 0                                       # anything JSON can carry

        def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk]:
            for page in range(position, self._pages):      # open connections here, not in __init__
                yield Chunk(fetch(self._url, page), page + 1, end=page + 1 == self._pages)

It must give the same records again when it is read again from an earlier position. With `plan` Spark also spreads
the reading over its workers; without it the driver reads.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, SourceFailed, describe_cause

_QUEUE_SIZE = 4096
_STOP_CHECK_S = 0.2


class IterableSource(Source):
    """One channel over `make_iterable()`, which must return the same values each time it is called.

    A position is the number of values before it: after a restart a fresh iterable is taken and that many values are
    skipped. With `bounded=False` the iterable may wait for its next value: it is then drawn by a thread of its own.
    """

    def __init__(self, make_iterable: Callable[[], Iterable[Any]], bounded: bool = True) -> None:
        if not callable(make_iterable):
            raise InvalidArgument(
                f"an iterable source needs a function that returns an iterable, not {type(make_iterable).__name__}",
                way_out="write IterableSource(lambda: values); a fresh iterable is taken for every restart",
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

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk]:
        live = self._live_at(position)
        while True:
            values, end, error = live.take(max(limit, 1))
            live.position += len(values)
            if error is not None:
                # What follows an error is read from a fresh iterable.
                self._drop()
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

    def _live_at(self, position: int) -> _Live:
        """The iterable that is open already if it stands at `position`, else a fresh one moved there."""
        if self._live is not None and self._live.position == position:
            return self._live
        self._drop()
        live = (
            _Direct(self._make_iterable, position)
            if self.bounded
            else _Threaded(self._make_iterable, position)
        )
        if isinstance(live, _Threaded):
            weakref.finalize(self, live.stop.set)
        self._live = live
        return live

    def _drop(self) -> None:
        if isinstance(self._live, _Threaded):
            self._live.stop.set()
        self._live = None


Taken = tuple[list[Any], bool, Exception | None]


def _open_at(make_iterable: Callable[[], Iterable[Any]], position: int) -> Iterator[Any]:
    values = iter(make_iterable())
    skipped = sum(1 for _ in islice(values, position))
    if skipped < position:
        raise SourceFailed(
            f"the iterable has only {skipped} values, but {position} were read from it before",
            way_out="let make_iterable() return the same values each time; a list that is changed does not",
        )
    return values


class _Direct:
    """Draws values where it is called."""

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


class _Threaded:
    """Draws values in a thread: an iterable that waits must not stop the engine."""

    def __init__(self, make_iterable: Callable[[], Iterable[Any]], position: int) -> None:
        self.position = position
        self.stop = threading.Event()
        self._ended = False
        self._queue: queue.Queue[Taken] = queue.Queue(_QUEUE_SIZE)
        # The thread holds the queue, not the source: a source nobody uses any more stops it.
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
        f"the iterable failed behind its value number {position}",
        cause=describe_cause(error),
        way_out="fix what make_iterable() returns; after a restart reading goes on behind that value",
    )
