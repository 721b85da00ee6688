from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event, InputEvent, OutputEvent
from emberflow.observability import event_reader
from emberflow.observability.event_json import EventJson
from emberflow.observability.event_log import EventLog, EventRecord
from emberflow.observability.event_reader import EventFilter, EventFollower, ReadCounts, read_events
from emberflow.observability.event_view import table_lines, tree_lines
from tests.support.event_logs import NEW_YEAR_MS, error, record, settings

GOLDEN = Path(__file__).parents[2] / "golden" / "v1" / "event_log_v1.jsonl"

JSON = EventJson(settings("logs"))


def write(path: Path, *records: EventRecord) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for one in records:
            file.write(JSON.line(one))


def ids(path: Path, **wanted: Any) -> list[str]:
    return [event["id"] for event in read_events(path, **wanted)]


def test_processes_are_merged_by_time_and_files_of_one_follow_each_other(tmp_path: Path) -> None:
    write(tmp_path / "a" / "events-x-1-0-000001.jsonl", record(id="1"), record(id="4", after_ms=4))
    write(tmp_path / "a" / "events-x-1-0-000002.jsonl", record(id="5", after_ms=5))
    write(
        tmp_path / "b" / "events-x-2-0-000001.jsonl", record(id="2", after_ms=2), record(id="6", after_ms=6)
    )
    assert ids(tmp_path) == ["1", "2", "4", "5", "6"]
    assert ids(tmp_path / "b" / "events-x-2-0-000001.jsonl") == ["2", "6"]


def test_what_was_written_is_read_across_rotation(tmp_path: Path) -> None:
    log = EventLog(settings(tmp_path, max_file_bytes=2_000, max_files=100), "scorer")
    for number in range(200):
        log.record(record(id=f"{number}"))
    log.close()
    assert ids(tmp_path) == [str(number) for number in range(200)]


def test_repeated_events_are_shown_once(tmp_path: Path) -> None:
    counts = ReadCounts()
    file = tmp_path / "x.jsonl"
    write(file, record(id="a"), error("boom"), error("boom", action="other"), record(id=""), record(id=""))
    write(file, record(id="a", after_ms=9), error("boom", after_ms=9), record(id="a", run="r2"))
    found = list(read_events(file, counts=counts))
    assert [(event["id"], event["kind"], event["run"]) for event in found] == [
        ("a", "event", "r1"),
        ("e1", "error", "r1"),
        ("e1", "error", "r1"),
        ("", "event", "r1"),
        ("", "event", "r1"),
        ("a", "event", "r2"),
    ]
    assert counts.repeats == 2


def test_filters(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    write(
        file,
        record("A", "1", 0, run="run-1", key="ann"),
        record("B", "2", 10, run="run-2", key=7),
        record("_input_event", "3", 20, run="other", key=("a", 1)),
    )
    assert ids(file, run="run") == ["1", "2"]
    assert ids(file, type="A") == ["1"]
    assert ids(file, type="InputEvent") == ["3"]
    assert ids(file, key="ann") == ["1"]
    assert ids(file, key="7") == ids(file, key=7) == ["2"]
    assert ids(file, key=["a", 1]) == ["3"]
    assert ids(file, since=NEW_YEAR_MS + 10) == ["2", "3"]
    assert ids(file, since=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)) == []
    assert ids(file, agent="scorer", key="ann", type="B") == []


def test_corrupted_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    write(file, record(id="a"))
    whole = JSON.line(record(id="b"))
    garbage = [b"\xff\xfe", b"[1]", b"{}", b'{"v":1}', b"", b'{"v":1,"time":7}', b"[" * 5_000]
    newer = whole.replace(b'"v":1', b'"v":2')
    file.write_bytes(file.read_bytes() + b"\n".join(garbage) + b"\n" + newer + whole + whole[:40])
    counts = ReadCounts()
    assert [event["id"] for event in read_events(file, counts=counts)] == ["a", "b"]
    assert (counts.bad, counts.torn, counts.newer, counts.events) == (6, 1, 1, 2)


def test_a_last_line_without_its_break_counts(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(JSON.line(record(id="a"))[:-1])
    assert ids(file) == ["a"]


def test_lines_longer_than_a_chunk_and_longer_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "_CHUNK", 50)
    monkeypatch.setattr(event_reader, "_LONGEST_LINE", 1_000)
    file = tmp_path / "x.jsonl"
    write(file, record(id="a"), record(id="long", text="x" * 1_500), record(id="b"))
    counts = ReadCounts()
    assert [event["id"] for event in read_events(file, counts=counts)] == ["a", "b"]
    assert counts.bad == 1


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="there is no event log"):
        read_events(tmp_path / "nowhere")


def test_following_finds_new_lines_and_new_files(tmp_path: Path) -> None:
    follower = EventFollower(tmp_path / "logs", EventFilter(agent="scorer"))
    assert follower.poll() == []
    first = tmp_path / "logs" / "a-000001.jsonl"
    write(first, record(id="1"), record(id="2", after_ms=1))
    assert [event["id"] for event in follower.poll(last=1)] == ["2"]
    half = JSON.line(record(id="3"))
    with first.open("ab") as file:
        file.write(half[:30])
    assert follower.poll() == []
    with first.open("ab") as file:
        file.write(half[30:])
    write(tmp_path / "logs" / "b-000001.jsonl", record(id="0", after_ms=-1), record(id="2"))
    assert [event["id"] for event in follower.poll()] == ["0", "3"]
    assert follower.poll() == []


@given(data=st.lists(st.binary() | st.sampled_from([JSON.line(record()), b"\n", b'{"v":1,'])))
@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_can_be_read(tmp_path: Path, data: list[bytes]) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"".join(data))
    events = list(read_events(file))
    assert EventFollower(file, EventFilter()).poll() == events or not file.read_bytes().endswith(b"\n")


texts = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
some_ids = st.sampled_from(["", "a", "b", "c"]) | json_values
loose_lines = st.fixed_dictionaries(
    {"v": st.just(1), "time": st.sampled_from(["2026-01-01T00:00:00.000Z", "2026-13-99T99:99:99.999Z"])},
    optional={
        "kind": st.sampled_from(["event", "error"]),
        "id": some_ids,
        "upstream_id": some_ids,
        "upstream_action": some_ids,
        "attributes": st.dictionaries(texts, json_values, max_size=3) | json_values,
        **dict.fromkeys(("agent", "key", "run", "type", "action", "error"), texts | json_values),
    },
)


@given(lines=st.lists(loose_lines, max_size=8), width=st.integers(20, 120))
@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_can_be_read_can_be_shown(tmp_path: Path, lines: list[dict[str, Any]], width: int) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    events = list(read_events(file))
    assert len(list(table_lines(events, width=width, color=False))) == len(events) + bool(events)
    if events:
        assert len(list(tree_lines(events, width=width, color=False))) > len(events)


class Reviewed(Event):
    score: int
    note: str = ""


def golden_records() -> list[EventRecord]:
    arrived = InputEvent({"user": "ann", "text": "x" * 40, "password": "hunter2", "größe": [1.5, None, True]})
    arrived.id = "in-1"
    reviewed = Reviewed(3, note="late")
    reviewed.id, reviewed.upstream_event_id, reviewed.upstream_action_name = "ev-1", "in-1", "review"
    left = OutputEvent({"when": dt.date(2026, 1, 1), "deep": {"a": {"b": {"c": 1}}}})
    left.id, left.upstream_event_id, left.upstream_action_name = "out-1", "ev-1", "decide"
    rows = [
        EventRecord(NEW_YEAR_MS + after, "reviewer", ("ann", 1), "run-1", event, "event")
        for after, event in enumerate([arrived, reviewed, left])
    ]
    failed = "ActionFailed [EF2201]: action 'notify' failed\n  cause: OSError: gone"
    rows.append(
        EventRecord(NEW_YEAR_MS + 9, "reviewer", ("ann", 1), "run-1", reviewed, "error", failed, "notify")
    )
    rows.append(EventRecord(NEW_YEAR_MS + 10, "reviewer", None, "run-2", None, "error", "no event", ""))
    return rows


def test_lines_of_format_1_are_still_understood_and_written() -> None:
    writer = EventJson(settings("logs", max_string=20, max_depth=4))
    now = [json.loads(writer.line(one)) for one in golden_records()]
    assert [json.loads(line) for line in GOLDEN.read_bytes().splitlines()] == now
    counts = ReadCounts()
    events = list(read_events(GOLDEN, counts=counts))
    assert [(event["kind"], event["id"], event["upstream_id"]) for event in events] == [
        ("event", "in-1", ""),
        ("event", "ev-1", "in-1"),
        ("event", "out-1", "ev-1"),
        ("error", "ev-1", "in-1"),
        ("error", "", ""),
    ]
    assert events[0]["key"] == ["ann", 1]
    assert events[0]["attributes"]["input"]["password"] == "***"
    assert (counts.bad, counts.torn, counts.newer) == (0, 0, 0)
