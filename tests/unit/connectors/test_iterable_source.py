from __future__ import annotations

import gc
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.connectors.iterable_source import IterableSource
from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, SourceFailed
from tests.support.reading import read_all, read_restarting


class Counting:
    """Counts how often it is opened."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.opened = 0

    def __call__(self) -> Iterator[int]:
        self.opened += 1
        return iter(range(self.count))


@given(st.integers(0, 30), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 3))
def test_splitting_does_not_change_what_is_read(count: int, limits: list[int], per_run: int) -> None:
    source = IterableSource(Counting(count))
    assert read_all(source, limit=limits[0]) == list(range(count))
    assert read_restarting(source, 0, source.start(1)[0], limits, per_run) == list(range(count))


def test_continuing_does_not_open_the_iterable_again() -> None:
    make = Counting(100)
    source = IterableSource(make)
    position: Any = 0
    for _ in range(10):
        chunk = next(source.read(0, position, 5))
        position = chunk.position
    assert (position, make.opened) == (50, 1)
    assert next(source.read(0, 20, 5)).values == [20, 21, 22, 23, 24]
    assert make.opened == 2


def test_an_error_inside_the_iterable_comes_after_the_values_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("line is dead")

    source = IterableSource(broken)
    chunks = source.read(0, 0, 10)
    assert next(chunks) == Chunk([1, 2], 2)
    with pytest.raises(SourceFailed) as caught:
        next(chunks)
    assert str(caught.value).splitlines() == [
        "SourceFailed [EF2105]: the iterable failed after its value number 2",
        "  cause: OSError: line is dead",
        "  what to do: fix what make_iterable() returns; after a restart reading continues after that value",
    ]


def test_an_iterable_that_lost_values_is_detected() -> None:
    with pytest.raises(SourceFailed, match="only 3 values, but 5 were read from it before"):
        list(IterableSource(Counting(3)).read(0, 5, 10))


def test_an_iterable_instead_of_a_function_is_rejected() -> None:
    with pytest.raises(InvalidArgument, match=r"not list[\s\S]*lambda: values"):
        IterableSource([1, 2])  # pyright: ignore[reportArgumentType]


def poll(source: Source, position: Position, wanted: int) -> list[Chunk]:
    """Polls until this many values were read, like an engine."""
    chunks: list[Chunk] = []
    deadline = time.monotonic() + 120
    while sum(len(chunk.values) for chunk in chunks) < wanted or not (wanted or chunks):
        assert time.monotonic() < deadline
        for chunk in source.read(0, position, 3):
            chunks.append(chunk)
            position = chunk.position
        time.sleep(0.001)
    return chunks


def values_of(chunks: list[Chunk]) -> list[Any]:
    return [value for chunk in chunks for value in chunk.values]


def test_an_unbounded_iterable_that_waits_does_not_block() -> None:
    resume = threading.Event()

    def waiting() -> Iterator[int]:
        yield from range(5)
        resume.wait(120)
        yield 5

    source = IterableSource(waiting, bounded=False)
    assert values_of(poll(source, 0, 5)) == [0, 1, 2, 3, 4]
    assert list(source.read(0, 5, 10)) == []
    resume.set()
    assert values_of(poll(source, 5, 1)) == [5]


def test_an_unbounded_iterable_may_end_and_may_fail() -> None:
    source = IterableSource(Counting(4), bounded=False)
    assert values_of(poll(source, 0, 4)) == [0, 1, 2, 3]
    assert poll(source, 4, 0)[-1].end

    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no")

    failing = IterableSource(broken, bounded=False)
    with pytest.raises(SourceFailed, match="after its value number 1"):
        poll(failing, 0, 2)


def test_an_unbounded_iterable_can_return_to_a_position() -> None:
    source = IterableSource(Counting(100), bounded=False)
    poll(source, 0, 20)
    assert values_of(poll(source, 7, 3))[:3] == [7, 8, 9]


def test_a_source_that_was_collected_leaves_no_thread() -> None:
    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    source = IterableSource(endless, bounded=False)
    poll(source, 0, 1)
    pickle.dumps(IterableSource(Counting(1), bounded=False))
    feeders = [thread for thread in threading.enumerate() if thread.name == "emberflow-iterable-source"]
    assert feeders
    del source
    gc.collect()
    for thread in feeders:
        thread.join(120)
        assert not thread.is_alive()


def fetch(url: str, page: int) -> list[str]:
    return [f"{url}#{page}"]


def test_the_docstrings_own_source_works() -> None:
    class PageSource(Source):
        def __init__(self, url: str, pages: int) -> None:
            self._url, self._pages = url, pages

        def start(self, parallelism: int) -> list[Position]:
            return [0]

        def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk]:
            for page in range(position, self._pages):
                yield Chunk(fetch(self._url, page), page + 1, end=page + 1 == self._pages)

    assert read_all(PageSource("pages", 2)) == ["pages#0", "pages#1"]


def slowly() -> Iterator[int]:
    for number in range(6):
        time.sleep(0.02)
        yield number


def test_values_that_have_not_arrived_yet_are_waited_for_when_a_batch_is_repeated() -> None:
    """A new reader has nothing at first; what was read before must be returned again nevertheless."""
    source = IterableSource(slowly, bounded=False)
    again = [value for chunk in source.read_again(0, 1, 5, 100) for value in chunk.values]
    assert again == [1, 2, 3, 4]


def test_an_iterable_that_lacks_what_was_read_before_is_an_error() -> None:
    with pytest.raises(SourceFailed, match="has only 2 values, but 3 were read"):
        list(IterableSource(lambda: ["a", "b"]).read_again(0, 0, 3, 10))


def test_two_readers_of_one_source_do_not_share_values() -> None:
    """Both are at the same position at one time: the source occurs twice in a program."""
    source = IterableSource(lambda: range(8))
    one = source.read(0, 0, 2)
    first = next(one).values
    other = source.read(0, 2, 3)
    second = next(other).values
    assert first + [value for chunk in one for value in chunk.values] == list(range(8))
    assert second + [value for chunk in other for value in chunk.values] == list(range(2, 8))
