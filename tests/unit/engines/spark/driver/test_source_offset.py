"""Offsets of sources: what Spark has stored survives a round trip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emberflow.engines.spark.driver.source_offset import ChannelOffset, Json, SourceOffset

GOLDEN = Path(__file__).parents[4] / "golden" / "v1"


@pytest.mark.parametrize("name", ["offsets.json", "offsets_with_start.json"])
def test_stored_offsets_survive_a_round_trip(name: str) -> None:
    for stored in json.loads((GOLDEN / name).read_text()):
        # Compared as text: Spark considers another order of names another offset.
        assert json.dumps(SourceOffset.from_json(stored).to_json()) == json.dumps(stored)


@pytest.mark.parametrize(
    ("offset", "stored"),
    [
        (
            SourceOffset(channels=(ChannelOffset(0, False),), initial=True),
            {"channels": [[0, False, 0]], "run": 0, "initial": True},
        ),
        (
            SourceOffset(channels=(ChannelOffset(["f", 4], True, 4, (None,)),), run=1),
            {"channels": [[["f", 4], True, 4, None]], "run": 1},
        ),
        (
            SourceOffset(channels=(ChannelOffset(4, True, 4), ChannelOffset(None, False, 2)), tick=3),
            {"channels": [[4, True, 4], [None, False, 2]], "run": 0, "tick": 3},
        ),
    ],
)
def test_the_stored_format(offset: SourceOffset, stored: Json) -> None:
    assert json.dumps(offset.to_json()) == json.dumps(stored)
    assert SourceOffset.from_json(stored) == offset


def test_a_source_has_ended_when_all_its_channels_have() -> None:
    ended, open_ = ChannelOffset(1, True), ChannelOffset(1, False)
    assert SourceOffset(channels=(ended, ended)).ended
    assert not SourceOffset(channels=(ended, open_)).ended
