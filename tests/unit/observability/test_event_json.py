from __future__ import annotations

import base64
import datetime as dt
import json
import math
import uuid
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from emberflow.events.agent_events import Event, InputEvent
from emberflow.observability import event_json, plain_line
from emberflow.observability.event_json import EventJson
from emberflow.observability.event_record import EventRecord
from emberflow.observability.plain_line import PlainLines, time_text
from emberflow.rendering.secret_names import is_hidden, scrub
from tests.support.event_logs import error, record, settings


class Level(Enum):
    HIGH = "high"


class Number(IntEnum):
    ONE = 1


class Shouting(str):
    def __str__(self) -> str:
        return "LOUD"


@dataclass
class Order:
    user: str
    api_key: str
    notes: list[Any] = field(default_factory=list)
    cache: str = field(default="large", repr=False)


Point = namedtuple("Point", "x y")


class Model:
    """What the log needs of a Pydantic model."""

    model_fields = MappingProxyType({"name": object(), "password": object()})

    def __init__(self) -> None:
        self.name = "ann"
        self.password = "hunter2"
        self.model_extra = {"more": 1}


class Hostile:
    """Raises on every access."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")


class Scored(Event):
    score: int
    reason: str = ""


def written(value: Any, **changes: Any) -> Any:
    line = EventJson(settings("logs", **changes)).line(record(value=value))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)["attributes"]["value"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("größe\n", "größe\n"),
        (True, True),
        (None, None),
        (-1.5, -1.5),
        (2**63, str(2**63)),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        (deque([1]), [1]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({1: "a", "1": "b", None: "c"}, {"1": "a", "1 (1)": "b", "None": "c"}),
        (Level.HIGH, "high"),
        (Number.ONE, 1),
        (Shouting("quiet"), "quiet"),
        (Point(1, 2), {"x": 1, "y": 2}),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02T03:00:00+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.timedelta(hours=1), "1:00:00"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Decimal("1.50"), "1.50"),
        (PurePosixPath("a/b"), "a/b"),
        (b"abc", "base64:YWJj"),
        (ValueError("too late"), "ValueError: too late"),
        (Order("ann", "sk-1", [1]), {"user": "ann", "api_key": "***", "notes": [1]}),
        (Model(), {"name": "ann", "password": "***", "more": 1}),
        (Scored(3), {"type": "Scored", "attributes": {"score": 3, "reason": ""}}),
        (Order, f"<class '{__name__}.Order'>"),
        (Hostile(), "<Hostile, repr() raised RuntimeError>"),
        ([Hostile()], ["<Hostile, repr() raised RuntimeError>"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rendering_of_values(value: Any, shown: Any) -> None:
    assert written(value) == shown
    assert written(value, level="VERBOSE") == shown


def test_an_unpaired_surrogate_is_valid_json() -> None:
    assert written("a\ud800b") == "a\ud800b"
    assert json.loads(EventJson(settings("logs")).line(record(**{"\udfff": 1})))["attributes"] == {  # pyright: ignore[reportArgumentType]
        "\udfff": 1
    }


def test_standard_truncates_and_shows_what_is_missing() -> None:
    small = {"max_string": 5, "max_items": 2, "max_depth": 2}
    assert written("abcdefgh", **small) == "abcde… (+3 chars)"
    assert written([1, 2, 3, 4], **small) == [1, 2, "… (+2 items)"]
    assert written({"a": {"b": 1}, "c": [1], "d": []}, **small) == {
        "a": "… (1 entry)",
        "c": "… (1 item)",
        "d": [],
    }
    assert written({"abcdefgh": 1}, **small) == {"abcde… (+3 chars)": 1}
    assert written(b"12345678", **small) == "base64:MTIz… (+5 bytes)"
    assert written({str(n): n for n in range(5_000)})["…"] == "… (+3001 entries)"


def test_verbose_writes_everything() -> None:
    value = {"text": "x" * 10_000, "items": list(range(1_000)), "deep": [[[[[[[["end"]]]]]]]]}
    assert written(value, level="VERBOSE", max_string=1, max_items=1, max_depth=1) == value


@pytest.mark.parametrize("level", ["STANDARD", "VERBOSE"])
def test_cyclic_values_are_bounded(level: str) -> None:
    loop: list[Any] = [1]
    loop += [loop, loop]
    assert written(loop, level=level) == [1, "… (contains itself)", "… (contains itself)"]
    bomb: list[Any] = []
    for _ in range(18):
        bomb = [bomb, bomb, bomb]
    assert written(bomb, level=level)


def test_the_same_value_twice_is_not_a_cycle() -> None:
    shared = {"a": 1}
    assert written([shared, shared]) == [{"a": 1}, {"a": 1}]


@pytest.mark.parametrize("level", ["STANDARD", "VERBOSE"])
@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "X-API-Key", "token", "accessToken", "password", "client_secret", "Authorization"],
)
def test_secrets_are_masked_wherever_they_are(name: str, level: str) -> None:
    value = {"headers": [{name: "sk-123"}], "arguments": json.dumps({name: "sk-123", "more": 1})}
    line = EventJson(settings("logs", level=level, max_string=500)).line(
        record(value=value, other="Bearer sk-123", **{name: "sk-123"})  # pyright: ignore[reportArgumentType]
    )
    assert b"sk-123" not in line
    assert b"more" in line


def with_secret(secret: str, record: EventRecord, **limits: Any) -> bytes:
    record.secrets = {"another secret", secret}
    return EventJson(settings("logs", **limits)).line(record)


@pytest.mark.parametrize("secret", ["sk-314159", 'quoted "sk"', "back\\slash", "zwölf\nlines", "\ud800half"])
@pytest.mark.parametrize("level", ["STANDARD", "VERBOSE"])
def test_known_values_are_masked_wherever_they_are(secret: str, level: str) -> None:
    text = f"the key {secret} is refused"
    for value in (text, {"deep": [{"er": (text,)}]}, {text: 1}, Order(text, ""), ValueError(text), {1, text}):
        found = json.loads(with_secret(secret, record(note=value), level=level))
        assert "the key *** is refused" in json.dumps(found)
    assert json.loads(with_secret(secret, record(key=text), level=level))["key"] == "the key *** is refused"
    failed = json.loads(with_secret(secret, error(text), level=level))
    assert failed["error"] == "the key *** is refused"


def test_known_values_are_masked_in_bytes_and_composed_keys() -> None:
    shown = json.loads(with_secret("sk-314159", record(key=("ann", "sk-314159"), raw=b"is sk-314159")))
    assert shown["key"] == ["ann", "***"]
    assert shown["attributes"]["raw"] == "base64:" + base64.b64encode(b"is ***").decode()


def test_a_known_value_is_masked_before_the_text_is_truncated() -> None:
    line = with_secret("sk-314159", record(note="the key sk-314159 is refused"), max_string=12)
    assert json.loads(line)["attributes"]["note"] == "the key *** … (+10 chars)"


def test_a_line_without_known_values_is_the_same() -> None:
    assert with_secret("sk-314159", record(note="all is well")) == EventJson(settings("logs")).line(
        record(note="all is well")
    )


def test_a_known_value_does_not_change_what_is_not_text() -> None:
    found = json.loads(with_secret("1", record(n=1, v="v1", type1=None)))
    assert found["v"] == 1
    assert found["attributes"] == {"n": 1, "v": "v***", "type***": None}


def test_a_truncated_name_still_masks_its_value() -> None:
    assert written({"openai_api_key": "sk"}, max_string=6) == {"openai… (+8 chars)": "***"}


def test_counts_of_tokens_are_not_secrets() -> None:
    usage = {
        "max_tokens": 100,
        "token_usage": {"prompt_tokens": 5},
        "token": None,
        "author": "ann",
        "key": "k",
    }
    assert written(usage) == usage
    assert is_hidden("password", 1234)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Client(api_key='sk-1', n=2)", "Client(api_key='***', n=2)"),
        ('{"password": "a\\"b", "n": 1}', '{"password": "***", "n": 1}'),
        (r'"{\"token\": \"sk\", \"n\": 1}"', r'"{\"token\": \"***\", \"n\": 1}"'),
        ("Authorization: Bearer abc.def next", "Authorization: *** next"),
        ("secret='cut of", "secret='***'"),
        ("max_tokens=5, token=abc", "max_tokens=5, token=***"),
        ("nothing here: x=1", "nothing here: x=1"),
    ],
)
def test_secrets_inside_strings(text: str, shown: str) -> None:
    assert scrub(text) == shown


def test_an_error_line() -> None:
    line = json.loads(
        EventJson(settings("logs")).line(error("boom: password='x'", action="notify", after_ms=7))
    )
    assert line == {
        "v": 1,
        "time": "2026-01-01T00:00:00.007Z",
        "agent": "scorer",
        "key": "k",
        "run": "r1",
        "kind": "error",
        "id": "e1",
        "type": "Scored",
        "upstream_id": "",
        "upstream_action": "",
        "action": "notify",
        "error": "boom: password='***'",
    }


@pytest.mark.parametrize(
    ("key", "shown"),
    [("k" * 5_000, "k" * 5_000), (7, 7), (("a", 1), ["a", 1]), (Level.HIGH, repr(Level.HIGH))],
)
def test_keys(key: Any, shown: Any) -> None:
    assert json.loads(EventJson(settings("logs")).line(record(key=key)))["key"] == shown


def test_times() -> None:
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(10**30)[:4] == "9999"
    assert time_text(-1)[:4] == "1970"


class Broken(InputEvent):
    @property
    def attributes(self) -> Any:
        raise RuntimeError("gone")

    @attributes.setter
    def attributes(self, value: Any) -> None:
        pass


def test_an_unreadable_event_still_has_a_line() -> None:
    line = EventJson(settings("logs")).line(EventRecord(1, "a", "k", "r", Broken(1), "event"))  # pyright: ignore[reportCallIssue]
    assert json.loads(line)["attributes"] == {"…": "could not be written: RuntimeError"}


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.datetimes()
    | st.decimals()
    | st.uuids()
    | st.complex_numbers()
    | st.builds(Hostile)
    | st.sampled_from([Level.HIGH, Number.ONE, Model(), Order("a", "b"), object(), Order, len])
)
hashable = (
    st.text() | st.integers() | st.floats() | st.none() | st.binary() | st.tuples(st.text(), st.integers())
)
anything = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(hashable, inner, max_size=5)
        | st.sets(hashable, max_size=5)
        | st.tuples(inner, inner)
        | inner.map(lambda value: Order("a", "b", [value]))
    ),
    max_leaves=20,
)


@given(
    value=anything,
    key=anything,
    time_ms=st.integers(),
    text=st.text(),
    level=st.sampled_from(["STANDARD", "VERBOSE"]),
    limits=st.tuples(*[st.integers(1, 50)] * 3),
)
@hypothesis_settings(deadline=None)
def test_any_value_is_rendered_as_one_valid_line(
    value: Any, key: Any, time_ms: int, text: str, level: str, limits: tuple[int, int, int]
) -> None:
    string, items, depth = limits
    writer = EventJson(settings("logs", level=level, max_string=string, max_items=items, max_depth=depth))
    event = Event("T", {"value": value, text: value})
    for kind in ("event", "error"):
        line = writer.line(EventRecord(time_ms, text, key, text, event, kind, text, text))
        assert line.count(b"\n") == 1
        content = json.loads(line.decode(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert content["v"] == 1
        assert content["kind"] == kind


@given(value=anything)
@hypothesis_settings(deadline=None)
def test_both_encoders_agree(value: Any) -> None:
    fast = written(value)
    assert event_json.fast_dumps is not None, "orjson is one of the test requirements"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_json, "fast_dumps", None)
        patch.setattr(plain_line, "fast_dumps", None)
        assert written(value) == fast


@given(value=anything)
@hypothesis_settings(deadline=None)
def test_the_fast_path_writes_the_same_line(value: Any) -> None:
    short = written(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainLines, "line", lambda self, record: None)
        assert written(value) == short
