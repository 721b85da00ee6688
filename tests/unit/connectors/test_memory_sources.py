"""Collections, sequences and generators."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.connectors.collection import CollectionSource
from emberflow.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from emberflow.connectors.sequence import NumberSequenceSource
from emberflow.connectors.source import Source
from emberflow.errors import InvalidArgument, SourceFailed
from tests.support.reading import read_all, read_planned, read_restarting

LIMITS = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def square(index: int) -> int:
    return index * index


def check_every_way(source: Source, parallelism: int, limits: list[int], per_run: int) -> list[Any]:
    whole = read_all(source, parallelism)
    starts = source.start(parallelism)
    for way in (
        lambda channel, start: read_restarting(source, channel, start, limits, per_run),
        lambda channel, start: read_planned(source, channel, start, limits),
    ):
        assert [value for channel, start in enumerate(starts) for value in way(channel, start)] == whole
    return whole


@given(st.lists(st.integers()), LIMITS, st.integers(1, 3))
def test_splitting_a_collection_does_not_change_what_is_read(
    values: list[int], limits: list[int], per_run: int
) -> None:
    assert check_every_way(CollectionSource(values), 3, limits, per_run) == values


@given(st.integers(-20, 20), st.integers(0, 40), st.integers(1, 5), LIMITS, st.integers(1, 3))
def test_splitting_a_sequence_does_not_change_what_is_read(
    start: int, more: int, parallelism: int, limits: list[int], per_run: int
) -> None:
    source = NumberSequenceSource(start, start + more)
    assert check_every_way(source, parallelism, limits, per_run) == list(range(start, start + more + 1))


@given(st.integers(0, 40), st.integers(1, 5), LIMITS, st.integers(1, 3))
def test_splitting_a_generator_does_not_change_what_is_read(
    count: int, parallelism: int, limits: list[int], per_run: int
) -> None:
    source = DataGeneratorSource(square, count=count)
    found = check_every_way(source, parallelism, limits, per_run)
    assert sorted(found) == [square(index) for index in range(count)]


def test_a_collection_accepts_any_iterable() -> None:
    source = CollectionSource(value for value in "abc")
    assert read_all(source) == ["a", "b", "c"]
    assert read_all(source) == ["a", "b", "c"]
    assert source.describe() == "Collection of 3"


@pytest.mark.parametrize("wrong", [5, "abc"])
def test_a_single_value_is_not_a_collection(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"needs a list of values[\s\S]*write \[value\]"):
        CollectionSource(wrong)


def test_an_empty_sequence_is_rejected() -> None:
    with pytest.raises(InvalidArgument, match="from 3 to 2 is empty"):
        NumberSequenceSource(3, 2)


def test_a_sequence_has_no_empty_channels() -> None:
    source = NumberSequenceSource(1, 2)
    assert source.start(8) == [[1, 1], [2, 2]]


def test_a_generator_may_never_end() -> None:
    source = DataGeneratorSource(square, parallelism=2)
    assert not source.bounded
    starts = source.start(8)
    assert len(starts) == 2
    chunks = source.read(1, starts[1], 3)
    assert [next(chunks).values, next(chunks).values] == [[1, 9, 25], [49, 81, 121]]
    assert source.plan(1, [1, 2], 3) == ([7, 2], False)


def test_a_failing_generator_delivers_what_came_before() -> None:
    source = DataGeneratorSource(lambda index: 6 // (3 - index), count=10)
    chunks = source.read(0, source.start(1)[0], 100)
    first = next(chunks)
    assert (first.values, first.position) == ([2, 3, 6], [3, 1])
    with pytest.raises(SourceFailed) as caught:
        next(chunks)
    assert str(caught.value).splitlines() == [
        "SourceFailed [EF2105]: the data generator's function failed for index 3",
        "  cause: ZeroDivisionError: integer division or modulo by zero",
        "  what to do: fix the function; it is called with 0, 1, 2, … and must return a value for each of them",
    ]


def test_a_generator_accepts_flinks_function_object() -> None:
    class Double:
        def map(self, value: int) -> int:
            return 2 * value

    assert read_all(DataGeneratorSource(Double(), count=3)) == [0, 2, 4]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DataGeneratorSource(5), "needs a function of the index, not 5"),  # pyright: ignore[reportArgumentType]
        (lambda: DataGeneratorSource(square, count=-1), "cannot generate -1 records"),
        (lambda: DataGeneratorSource(square, parallelism=0), "cannot have 0 channels"),
        (lambda: RateLimiterStrategy.per_second(0), "a rate of 0 records per second"),
        (lambda: RateLimiterStrategy.per_second(float("nan")), "a rate of nan"),
    ],
)
def test_impossible_generators_are_rejected(make: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        make()


def test_a_rate_determines_what_is_due() -> None:
    source = DataGeneratorSource(square, None, 100, RateLimiterStrategy.per_second(10))
    assert [source.available(0, [0, 1], elapsed) for elapsed in (0, 99, 100, 1000)] == [1, 1, 2, 11]
    assert source.available(0, [5, 1], 499) == 0
    assert source.due_ms(0, [5, 1]) == 500
    unlimited = DataGeneratorSource(square, None, 100, RateLimiterStrategy.no_op())
    assert unlimited.available(0, [0, 1], 0) is None
    assert unlimited.due_ms(0, [7, 1]) == 0


@given(
    st.one_of(st.integers(1, 10**7), st.floats(0.001, 1e7)),
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(0, 10**7),
)
def test_a_record_is_available_from_the_moment_it_is_due(
    rate: float, index: int, step: int, elapsed: int
) -> None:
    source: Source = pickle.loads(
        pickle.dumps(DataGeneratorSource(square, None, None, RateLimiterStrategy.per_second(rate)))
    )
    due = source.due_ms(0, [index, step])
    assert (source.available(0, [index, step], due) or 0) >= 1
    if due:
        assert source.available(0, [index, step], due - 1) == 0
    # The available records are due, and the next one is not.
    available = source.available(0, [index, step], elapsed)
    assert available is not None
    assert available == 0 or source.due_ms(0, [index + (available - 1) * step, step]) <= elapsed
    assert source.due_ms(0, [index + available * step, step]) > elapsed
