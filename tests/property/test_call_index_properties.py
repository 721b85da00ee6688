"""The index of a call log against a simple model: keys whose actions run one after another, batches that are attempted
several times, processes that die; records of all processes read in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emberflow.durable.index import CallIndex
from emberflow.durable.records import Began, Call, Claimed, Done, Ended, Parked, Record
from emberflow.operators.agents.calls.durable_calls import RETURNED, CallRecord

KEYS = "abc"


def call(action: str) -> CallRecord:
    return CallRecord(f"{action}1", "f", "", "f()", RETURNED, action)


def history(data: st.DataObject) -> tuple[dict[str, list[Record]], list[str], list[str], list[str], int]:
    """Parts of three processes, the actions whose calls must still be known, those held in state, those still to come, and
    the epoch."""
    parts: dict[str, list[Record]] = {"p0": [], "p1": [], "p2": []}
    committed = dict.fromkeys(KEYS, 0)
    recorded: set[str] = set()
    parked: dict[str, str] = {}
    epochs = data.draw(st.integers(1, 5))
    attempt = 0
    for epoch in range(epochs):
        reached: dict[str, int] = {}
        waits: dict[str, str] = {}
        for _ in range(data.draw(st.integers(1, 3))):
            attempt += 1
            part = parts[data.draw(st.sampled_from(sorted(parts)))]
            part.append(Began(epoch, "1/0", attempt))
            reached, waits = dict(committed), dict(parked)
            for key in KEYS:
                for _ in range(data.draw(st.integers(0, 2))):
                    reached[key] += 1
                    action = f"step/{key}-{reached[key]}/1/"
                    if action not in recorded:
                        recorded.add(action)
                        part.append(Call(call(action), f"m{len(part)}"))
                    part.append(Done(epoch, "1/0", attempt, action))
                    waits.pop(key, None)
                if data.draw(st.booleans()):
                    action = waits[key] = f"step/{key}-{reached[key] + 1}/1/"
                    part.append(Parked(epoch, attempt, {action: 0}))
                    if data.draw(st.booleans()) and action not in recorded:
                        recorded.add(action)
                        part.append(Call(call(action), f"m{len(part)}"))
        committed, parked = reached, waits
    needed = [action for action in recorded if int(action.split("-")[1].split("/")[0]) > committed[action[5]]]
    ahead = [f"step/{key}-{number}/1/" for key in KEYS for number in range(committed[key] + 1, 40)]
    return parts, sorted(needed), sorted(parked.values()), ahead, epochs


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_unfinished_work_is_known_whatever_the_order_of_reading(data: st.DataObject) -> None:
    parts, needed, waiting, ahead, epoch = history(data)
    index = CallIndex()
    rest: dict[str, list[Any]] = {owner: list(records) for owner, records in parts.items()}
    while any(rest.values()):
        owner = data.draw(st.sampled_from([name for name, records in sorted(rest.items()) if records]))
        count = data.draw(st.integers(1, len(rest[owner])))
        for record in rest[owner][:count]:
            index.apply(owner, record)
        del rest[owner][:count]
    index.settle(epoch)
    assert sorted(record.value for record in index.calls.values()) == needed
    # What an abandoned attempt parked is parked for longer than needed: its input is read again.
    assert set(waiting) <= set(index.parked()) <= {*waiting, *ahead}

    index.take_over(["p0", "p1"], "p2")
    copy = CallIndex()
    for record in index.records("p2"):
        copy.apply("p3", record)
    copy.settle(epoch)
    assert copy.calls == index.calls
    assert copy.parked() == index.parked()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_claim_ends_only_with_its_own_process(data: st.DataObject) -> None:
    """Processes claim actions, end some of them, and die; parts are read in any order."""
    parts: dict[str, list[Claimed | Ended]] = {"p0": [], "p1": [], "p2": []}
    running: set[tuple[str, str]] = set()
    for owner, part in parts.items():
        for number in range(data.draw(st.integers(0, 4))):
            action = f"step/{data.draw(st.sampled_from(KEYS))}-{number}/1/"
            part.append(Claimed(action))
            running.add((action, owner))
            if data.draw(st.booleans()):
                part.append(Ended(action))
                running.discard((action, owner))
    index = CallIndex()
    for owner in data.draw(st.permutations(sorted(parts))):
        for record in parts[owner]:
            index.apply(owner, record)
    dead = data.draw(st.sets(st.sampled_from(sorted(parts))))
    index.take_over(dead, "p3")
    for action in {record.action for part in parts.values() for record in part}:
        alive = {owner for item, owner in running if item == action and owner not in dead}
        assert set(index.claims.owners(action)) == alive
