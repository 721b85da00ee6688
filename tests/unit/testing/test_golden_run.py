"""Golden runs: a stable rendering, a readable diff, and the command that writes the file."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.testing.golden_run import UPDATE, assert_golden, plain


class Color(Enum):
    RED = 1


@dataclasses.dataclass
class Order:
    id: int
    color: Color


class Scored(Event):
    score: int


class Bare:
    def __init__(self) -> None:
        self.x = 1


class Slotted:
    __slots__ = ()


class Point(NamedTuple):
    x: int
    y: int


@pytest.fixture(autouse=True)
def _not_updating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPDATE, raising=False)


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        (None, None),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Color.RED, "Color.RED"),
        (datetime(2030, 1, 31, tzinfo=UTC), "2030-01-31T00:00:00+00:00"),
        (date(2030, 1, 31), "2030-01-31"),
        (timedelta(minutes=1), "0:01:00"),
        (Decimal("1.50"), "1.50"),
        (b"x", "b'x'"),
        (ValueError("no"), "ValueError('no')"),
        ((1, [2]), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: "a", Color.RED: "b"}, {"1": "a", "Color.RED": "b"}),
        ({1: "a", "1": "b"}, [["1", "b"], [1, "a"]]),
        (Order(1, Color.RED), {"Order": {"id": 1, "color": "Color.RED"}}),
        (Point(1, 2), {"Point": {"x": 1, "y": 2}}),
        (Event("paid", {"at": date(2030, 1, 1)}), {"type": "paid", "attributes": {"at": "2030-01-01"}}),
        (Scored(score=3), {"type": "Scored", "attributes": {"score": 3}}),
        (OutputEvent(Order(1, Color.RED)).output, {"Order": {"id": 1, "color": "Color.RED"}}),
        (Bare(), {"Bare": {"x": 1}}),
        (range(2), [0, 1]),
        (len, "builtins.len"),
        (Order, f"{__name__}.Order"),
    ],
    ids=lambda item: repr(item).split(" at 0x")[0],
)
def test_rendering(value: Any, rendered: Any) -> None:
    assert plain(value) == rendered


def test_no_addresses() -> None:
    assert "0x" not in plain(Slotted())
    assert plain(Slotted()) == plain(Slotted())


def test_a_message() -> None:
    assert plain(ChatMessage(content="x"))["ChatMessage"]["role"] == "MessageRole.USER"


def test_a_missing_file_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_golden([1], tmp_path / "g.json")
    assert "does not exist" in str(raised.value)
    assert f'{UPDATE}=1 python -m pytest "' in str(raised.value)
    assert 'test_golden_run.py::test_a_missing_file_says_how_to_write_it"' in str(raised.value)
    assert not (tmp_path / "g.json").exists()


def test_outside_of_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.raises(AssertionError, match=f"run it again with {UPDATE}=1"):
        assert_golden([1], tmp_path / "g.json")


def test_write_then_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "g.json"
    outputs = [Order(1, Color.RED), {"b": "ü\ud800", "a": 1}]
    monkeypatch.setenv(UPDATE, "1")
    assert_golden(outputs, path)
    monkeypatch.setenv(UPDATE, "0")
    assert_golden(outputs, str(path))

    with pytest.raises(AssertionError) as raised:
        assert_golden([Order(2, Color.RED), outputs[1]], path)
    said = str(raised.value)
    assert '-      "id": 1' in said
    assert '+      "id": 2' in said
    assert f"if the change is intended: {UPDATE}=1" in said

    monkeypatch.setenv(UPDATE, "1")
    assert_golden([2], path)
    assert path.read_text(encoding="utf-8") == "[\n  2\n]\n"


def test_the_layout_of_the_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text('{"b": 2,\n\n"a": [1]}', encoding="utf-8")
    assert_golden({"a": [1], "b": 2}, tmp_path / "g.json")


def test_a_file_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text("{", encoding="utf-8")
    with pytest.raises(AssertionError, match="is not JSON"):
        assert_golden(1, tmp_path / "g.json")


def test_long_diffs_are_cut(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text("[]", encoding="utf-8")
    with pytest.raises(AssertionError, match="more lines"):
        assert_golden(list(range(500)), tmp_path / "g.json")
