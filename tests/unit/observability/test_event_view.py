from __future__ import annotations

import json

import pytest

from emberflow.observability.event_json import EventJson
from emberflow.observability.event_reader import LoggedEvent, ReadCounts, parse_line
from emberflow.observability.event_record import EventRecord
from emberflow.observability.event_view import short_attributes, table_lines, tree_lines
from emberflow.observability.terminal_text import fit, pad, width_of
from emberflow.rendering.plain_text import clean
from tests.support.event_logs import error, record, settings

JSON = EventJson(settings("logs"))


def logged(one: EventRecord, upstream: str = "", action: str = "") -> LoggedEvent:
    assert one.event is not None
    one.event.upstream_event_id, one.event.upstream_action_name = upstream, action
    event = parse_line(JSON.line(one), ReadCounts())
    assert event is not None
    return event


RUN = [
    logged(record("_input_event", "in", input="hello")),
    logged(record("Scored", "s1", 5, score=3), "in", "score"),
    logged(record("Scored", "s2", 6, score=4), "in", "score"),
    logged(record("_output_event", "out", 9, output=[1]), "s1", "decide"),
    logged(error("ActionFailed: no\n  cause: gone", action="notify", id="s2", after_ms=12)),
]


def test_a_run_as_a_tree() -> None:
    assert list(tree_lines(RUN, width=100, color=False)) == [
        "run r1  01-01 00:00:00.000  4 events, 1 error, 12 ms  agent scorer  key k",
        '└─ _input_event  input="hello"  +0 ms',
        "   └─ score()",
        "      ├─ Scored  score=3  +5 ms",
        "      │  └─ decide()",
        "      │     └─ _output_event  output=[1]  +9 ms",
        "      └─ Scored  score=4  +6 ms",
        "         └─ notify()",
        "            └─ error: ActionFailed: no",
        "                 cause: gone",
    ]


def test_events_as_a_table() -> None:
    lines = list(table_lines([RUN[1], RUN[4]], width=100, color=False))
    assert lines == [
        "TIME (UTC)          AGENT   KEY  TYPE    ACTION  ATTRIBUTES",
        "01-01 00:00:00.005  scorer  k    Scored  score   score=3",
        "01-01 00:00:00.012  scorer  k    Scored  notify  ActionFailed: no",
    ]


def test_nothing_is_an_empty_table() -> None:
    assert list(table_lines([], width=100, color=False)) == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    long = [
        logged(record("Type" * 20, "a", key="schlüssel" * 9, text="日本語" * 50)),
        logged(record("B", "b", text="x" * 300), "a", "action" * 30),
        logged(error("wrong " * 40, action="other" * 20, id="b")),
    ]
    for lines in (table_lines(long, width=width, color=False), tree_lines(long, width=width, color=False)):
        assert max(map(width_of, lines)) <= width


def test_errors_are_red_and_only_where_colours_are_wanted() -> None:
    colored = "\n".join([*table_lines(RUN, width=100, color=True), *tree_lines(RUN, width=100, color=True)])
    assert colored.count("\x1b[31m") == 4
    assert "\x1b" not in "\n".join(tree_lines(RUN, width=100, color=False))


def test_the_contents_of_an_event_do_not_control_the_terminal() -> None:
    event = logged(
        record("bad\x1b[2J", "a", key="k\r\n", **{"na\x07me": "\x1b]0;title\x07", "rtl": "\u202eabc"})  # pyright: ignore[reportArgumentType]
    )
    shown = "".join(
        [*table_lines([event], width=200, color=False), *tree_lines([event], width=200, color=False)]
    )
    assert shown.isprintable()


def test_a_run_that_is_a_thousand_events_deep() -> None:
    run = [logged(record("Step", "0"))]
    run += [logged(record("Step", str(n)), str(n - 1), "next") for n in range(1, 1_000)]
    lines = list(tree_lines(run, width=80, color=False))
    assert len(lines) == 2_000
    assert max(map(width_of, lines)) <= 80


def test_cyclic_events_are_shown_once() -> None:
    run = [
        logged(record("A", "a"), "b", "x"),
        logged(record("B", "b"), "a", "y"),
        logged(record("C", "c"), "c", "z"),
    ]
    text = "\n".join(tree_lines(run, width=80, color=False))
    assert [text.count(f"─ {name}  ") for name in "ABC"] == [1, 1, 1]


def test_short_attributes() -> None:
    event = logged(record(a=1, text='say "hi"', more=[1, {"x": None}]))
    assert short_attributes(event, 100) == 'a=1 text="say \\"hi\\"" more=[1, {"x": null}]'
    assert short_attributes(event, 10) == "a=1 text=…"
    assert short_attributes(logged(record(text="x" * 1_000)), 20) == 'text="' + "x" * 13 + "…"
    assert json.loads(JSON.line(record()))["attributes"] == {}


def test_widths() -> None:
    assert width_of("日本") == 4
    assert width_of("e\u0301") == 1
    assert fit("日本語", 4) == "日…"
    assert fit("abc", 0) == ""
    assert pad("日", 4) == "日  "
    assert clean("a\tb\nc\x00") == "a b c\\x00"
