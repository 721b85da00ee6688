"""Records of a call log: the stored format does not change, and records of earlier versions are read."""

from __future__ import annotations

import pickletools
from typing import Any, get_args

import pytest

from emberflow.durable.records import (
    Began,
    Call,
    Claimed,
    Done,
    Due,
    Ended,
    Forgotten,
    Parked,
    Record,
    Runs,
    carried_over,
    fencing_epoch_of,
    for_another_job,
    from_stored,
    marked,
    note_from_stored,
    note_to_stored,
    noted_by,
    to_stored,
)
from emberflow.errors import CorruptData
from emberflow.events.codecs import decode, encode
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord

ACTION = "step/key-1/2/"
CALL = CallRecord(f"{ACTION}1", "f", "digest", "f()", RETURNED, "answer")

STORED: list[tuple[Record, tuple[Any, ...]]] = [
    (Call(CALL, "3:p.0"), ("call", CALL, "3:p.0")),
    (Forgotten(ACTION, "p.0"), ("forgotten", ACTION, "p.0")),
    (Claimed(ACTION, 3), ("claimed", ACTION, 3)),
    (Runs([ACTION], 3), ("runs", [ACTION], 3)),
    (Ended(ACTION), ("ended", ACTION)),
    (Parked(4, 1, {ACTION: 2}), ("parked", 4, 1, {ACTION: 2})),
    (Done(4, "1/0", 1, ACTION), ("done", 4, "1/0", 1, ACTION)),
    (Began(4, "1/0", 1), ("began", 4, "1/0", 1)),
    (Due("task", None, 4, 1), ("due", "task", None, 4, 1)),
]


def test_every_kind_is_here() -> None:
    assert {type(record) for record, _ in STORED} == {*get_args(Record)}


@pytest.mark.parametrize(("record", "stored"), STORED, ids=lambda item: type(item).__name__)
def test_the_stored_format(record: Record, stored: tuple[Any, ...]) -> None:
    assert to_stored(record) == stored
    assert type(to_stored(record)) is tuple
    assert from_stored(decode(encode(to_stored(record)))) == record
    assert type(from_stored(stored)) is type(record)


@pytest.mark.parametrize(("record", "stored"), STORED, ids=lambda item: type(item).__name__)
def test_stored_records_name_none_of_our_classes(record: Record, stored: tuple[Any, ...]) -> None:
    named = {
        argument
        for _, argument, _ in pickletools.genops(encode(to_stored(record))[1:])
        if isinstance(argument, str) and argument.startswith("emberflow.")
    }
    assert not named


def test_the_previous_version_wrote_no_fencing_epoch() -> None:
    assert from_stored(("claimed", ACTION)) == Claimed(ACTION, None)
    assert from_stored(("runs", [ACTION])) == Runs([ACTION], None)


@pytest.mark.parametrize("stored", [("unheard",), ("ended",), ("ended", ACTION, 1)])
def test_a_record_of_a_later_version_is_rejected(stored: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptData, match=rf"a record of kind '{stored[0]}' with {len(stored) - 1} fields"):
        from_stored(stored)


@pytest.mark.parametrize(
    ("note", "stored", "repeated"),
    [
        (Parked(4, 1, {ACTION: 2}), ("parked", {ACTION: 2}), Parked(5, 7, {ACTION: 2})),
        (Done(4, "1/0", 1, ACTION), ("done", ACTION), Done(5, "2/0", 7, ACTION)),
        (Due("task", 9, 4, 1), ("due", "task", 9), Due("task", 9, 5, 7)),
    ],
)
def test_notes_are_stored_without_their_attempt(note: Any, stored: tuple[Any, ...], repeated: Any) -> None:
    assert note_to_stored(note) == stored
    assert noted_by(Began(5, "2/0", 7), note_from_stored(stored)) == repeated


def test_a_note_of_a_later_version_is_rejected() -> None:
    with pytest.raises(CorruptData, match="a record of kind 'began' with 3 fields is unknown"):
        note_from_stored(("began", 1, "", 0))


def test_marks() -> None:
    assert (marked(0, "p.1"), marked(12, "p.1")) == ("p.1", "12:p.1")
    assert [fencing_epoch_of(mark) for mark in ("p.1", "12:p.1", "host:9.1")] == [0, 12, 0]


def test_records_that_are_carried_over_to_another_job() -> None:
    kept = [record for record, _ in STORED if carried_over(record, first_epoch=5)]
    assert {type(record) for record in kept} == {Call, Forgotten, Parked, Done, Began}
    assert [record for record, _ in STORED if carried_over(record, first_epoch=4)] == kept[:2]
    assert for_another_job(Call(CALL, "3:p.0")) == Call(CALL, "p.0")
    assert for_another_job(Ended(ACTION)) == Ended(ACTION)
