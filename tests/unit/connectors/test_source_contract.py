"""The contract of every source: no method configures the object for another one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.connectors.collection import CollectionSource
from emberflow.connectors.data_generator import DataGeneratorSource
from emberflow.connectors.files.file_source import FileSource
from emberflow.connectors.files.stream_formats import StreamFormat
from emberflow.connectors.iterable_source import IterableSource
from emberflow.connectors.sequence import NumberSequenceSource
from emberflow.connectors.source import Source, start_positions
from emberflow.dead_letters.letter_files import RedriveSource
from emberflow.errors import InvalidArgument
from emberflow.testing import TestSource
from tests.support.reading import read_channel, through_json


def twice(index: int) -> int:
    return index * 2


def files(folder: Path) -> FileSource:
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"{number}a\n{number}b\n")
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()


SOURCES: dict[str, Callable[[Path], Source]] = {
    "sequence": lambda folder: NumberSequenceSource(1, 23),
    "generator": lambda folder: DataGeneratorSource(twice, count=17),
    "generator of its own parallelism": lambda folder: DataGeneratorSource(twice, count=17, parallelism=3),
    "files": files,
    "collection": lambda folder: CollectionSource(range(9)),
    "iterable": lambda folder: IterableSource(lambda: range(9)),
    "test": lambda folder: TestSource(range(9)),
    "redriven": lambda folder: RedriveSource(str(folder), bounded=True),
}


def read_from(source: Source, starts: list[Any]) -> list[list[Any]]:
    return [
        read_channel(source, channel, through_json(position), 3) for channel, position in enumerate(starts)
    ]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_stored_positions_are_all_that_a_source_needs(tmp_path: Path, name: str, parallelism: int) -> None:
    """Neither an earlier call of `start`, nor one with another parallelism, changes what is read from a position."""
    source = SOURCES[name](tmp_path)
    starts = start_positions(source, parallelism)
    wanted = read_from(source, starts)
    never_started = SOURCES[name](tmp_path)
    assert read_from(never_started, starts) == wanted
    started_otherwise = SOURCES[name](tmp_path)
    started_otherwise.start(parallelism + 2)
    assert read_from(started_otherwise, starts) == wanted
    assert started_otherwise.start(parallelism) == starts
    if name != "iterable":
        shipped: Source = pickle.loads(pickle.dumps(source))
        assert read_from(shipped, starts) == wanted


@pytest.mark.parametrize("name", SOURCES)
def test_every_parallelism_reads_the_input_once(tmp_path: Path, name: str) -> None:
    source = SOURCES[name](tmp_path)
    read = [
        sorted(value for part in read_from(source, start_positions(source, parallelism)) for value in part)
        for parallelism in (1, 2, 3, 8)
    ]
    assert all(values == read[0] for values in read)


class Returns(Source):
    def __init__(self, starts: Any) -> None:
        self._starts = starts

    def start(self, parallelism: int) -> list[Any]:
        return self._starts


class OfTheOldContract(Source):
    def channels(self, parallelism: int) -> int:
        return parallelism


def test_a_start_that_is_not_a_list_of_positions_is_rejected() -> None:
    for wrong in (0, [], None, (1, 2)):
        with pytest.raises(InvalidArgument) as caught:
            start_positions(Returns(wrong), 2)
        assert str(caught.value).splitlines() == [
            f"InvalidArgument [EF1004]: start() of the source Returns returned {wrong!r}",
            "  what to do: return a list with one position per channel",
        ]


def test_positions_are_what_json_makes_of_them() -> None:
    assert start_positions(Returns([(1, 2), {"a": (3,)}]), 2) == [[1, 2], {"a": [3]}]
    with pytest.raises(
        InvalidArgument, match=r"are not JSON-serializable\n  cause: TypeError: Object of type set"
    ):
        start_positions(Returns([{1, 2}]), 2)


def test_a_source_with_the_old_channels_method_is_rejected() -> None:
    with pytest.raises(InvalidArgument, match=r"has a method channels\(\), which is not called"):
        start_positions(OfTheOldContract(), 2)
