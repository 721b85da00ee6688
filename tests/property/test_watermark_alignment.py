"""Watermark alignment against a slow model, and groups of sources read to their end: none waits forever, none runs ahead."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from emberflow.events.batch import MIN_WATERMARK
from emberflow.operators.watermarks.watermark_alignment import FIRST_RECORDS, AlignedChannel, AlignmentGroup

IDLE_MS = 30
COUNT = 3


@dataclass
class Seen:
    """What has happened to one channel, in order."""

    watermarks: list[tuple[int, int]]
    """(watermark, when)"""
    silent: bool = False
    ended: bool = False


def model_may_read(seen: list[Seen], number: int, drift_ms: int, now_ms: int) -> bool:
    """The rule as it is documented: not further ahead of the slowest than the drift, without idle and ended channels."""

    def own(item: Seen) -> int:
        return max([mark for mark, _ in item.watermarks], default=MIN_WATERMARK)

    def counts(item: Seen) -> bool:
        last = max([when for _, when in item.watermarks], default=0)
        return not item.ended and not (item.silent and now_ms - last >= IDLE_MS)

    lowest = min([own(item) for item in [*filter(counts, seen), seen[number]]])
    return own(seen[number]) - lowest <= drift_ms


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["reads", "reads", "rests", "ends"]),
        st.integers(0, COUNT - 1),
        st.integers(-50, 200),
        st.integers(0, 20),
    ),
    max_size=40,
)


@given(EVENTS, st.integers(0, 80))
def test_the_rule_is_that_of_the_model(events: list[tuple[str, int, int, int]], drift_ms: int) -> None:
    group, seen, now_ms = AlignmentGroup(drift_ms), [Seen([]) for _ in range(COUNT)], 0
    channels = [AlignedChannel(IDLE_MS, 0) for _ in range(COUNT)]
    for channel in channels:
        group.join(channel)
    for kind, number, watermark, passed_ms in events:
        now_ms += passed_ms
        if seen[number].ended:
            continue
        if kind == "reads":
            channels[number].advance(watermark, now_ms)
            seen[number].watermarks.append((watermark, now_ms))
            seen[number].silent = False
        elif kind == "rests":
            channels[number].resting = seen[number].silent = True
        else:
            group.leave(channels[number])
            seen[number].ended = True
        found = [bool(group.room(channel, now_ms, 1_000)) for channel in channels]
        assert found == [model_may_read(seen, number, drift_ms, now_ms) for number in range(COUNT)]
        assert any(found), "a group never waits for itself"


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=60), min_size=1, max_size=4),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_sources_are_read_to_their_end_and_stay_together(
    steps: list[list[int]], drift_ms: int, random: Random
) -> None:
    """Each list has the event time between the records of one source; who reads next is arbitrary."""
    group, now_ms = AlignmentGroup(drift_ms), 0
    channels = {AlignedChannel(None, 0): list(found) for found in steps}
    for channel in channels:
        group.join(channel)
    while channels:
        ready = [item for item in channels if group.room(item, now_ms, 1_000)]
        assert ready, "somebody may read"
        chosen = random.choice(ready)
        left = channels[chosen]
        room = group.room(chosen, now_ms, 1_000)
        part, channels[chosen] = left[:room], left[room:]
        begin = max(chosen.watermark, 0)
        chosen.advance(begin + sum(part), now_ms)
        chosen.has_read(len(part))
        # What was planned by the pace so far may be off by the length of one read.
        others = [item.watermark for item in channels if item is not chosen]
        if others and chosen.watermark > min(others) + drift_ms:
            assert chosen.watermark - min(others) - drift_ms <= 9 * max(len(part), FIRST_RECORDS) or (
                min(others) == MIN_WATERMARK
            )
        if not channels[chosen]:
            group.leave(chosen)
            del channels[chosen]
