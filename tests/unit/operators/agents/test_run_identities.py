"""Ids of runs and calls: separate ones for every key, and those of the first version where state has them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext
from emberflow.approvals.question_files import question_name
from emberflow.connectors.files.commit_ledger import CommitLedger
from emberflow.dead_letters.letter_files import letters_folder
from emberflow.errors import ReplayMismatch
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import identity_of, text_identity
from emberflow.events.key_groups import stable_hash
from emberflow.operators.agents.calls.durable_calls import ActionCalls, CallRecord
from tests.support.agent_harness import AgentHarness, Turn
from tests.support.memory_log import MemoryLog

TWINS = ("plumless", "buckeroo")


def test_the_first_version_had_one_id_for_both() -> None:
    assert stable_hash(TWINS[0]) == stable_hash(TWINS[1])
    assert stable_hash((TWINS[0], 1)) == stable_hash((TWINS[1], 1))


def test_arguments_with_equal_hashes_are_a_mismatch() -> None:
    log = MemoryLog()
    recorded = ActionCalls(log, "u/k-1/1/", restarts=False).next(max, (TWINS[0],), {})
    log.write_now(replace(recorded, outcome="returned", value=1))
    again = ActionCalls(log, "u/k-1/1/", restarts=False)
    with pytest.raises(ReplayMismatch, match=r"'plumless'.*'buckeroo'"):
        again.known(again.next(max, (TWINS[1],), {}))


@pytest.mark.parametrize("arguments", ["0123456789abcdef", "['Lock', 'str']"])
def test_a_call_recorded_by_the_first_version_is_identified_by_its_function(arguments: str) -> None:
    log = MemoryLog()
    log.write_now(CallRecord("u/k-1/1/1", "builtins.max", arguments, "max(1)", "returned", 7))
    calls = ActionCalls(log, "u/k-1/1/", restarts=False)
    found = calls.known(calls.next(max, (1,), {}))
    assert found is not None
    assert found.value == 7
    other = ActionCalls(log, "u/k-1/1/", restarts=False)
    with pytest.raises(ReplayMismatch):
        other.known(other.next(min, (1,), {}))


def test_similar_names_of_agents_have_separate_folders() -> None:
    names = ["a b", "a_b", "a/b", "", "_", "x" * 300, "x" * 301, "a-2", "a#2"]
    folders = [letters_folder("dir", name) for name in names]
    assert len(set(folders)) == len(names)
    assert folders[1] == "dir/dead-letters/a_b"
    assert all(len(folder) < 150 for folder in folders)


def test_a_question_of_the_first_version_keeps_its_name(tmp_path: Path) -> None:
    call = "agent-1/abc-1/1/1"
    assert question_name(tmp_path, call) == text_identity(call)
    asked = dict.fromkeys(("id", "question", "agent", "action", "key"), "x")
    body = {"version": 1, **asked, "call_id": call, "options": [], "asked_ms": 1, "expires_at_ms": None}
    (tmp_path / "bad940b13dd9.question.json").write_text(json.dumps(body))
    assert question_name(tmp_path, call) == "bad940b13dd9"


def test_a_ledger_of_an_earlier_version_keeps_its_folder(tmp_path: Path) -> None:
    made = CommitLedger(str(tmp_path), "job", "sink").staging.parent
    assert made.name == f"job-sink-{text_identity('job', 'sink')}"
    assert made.parent.name == ".emberflow"
    for earlier in (made.name, "job-sink-f7acc9b6"):
        folder = tmp_path / earlier / "_emberflow" / earlier
        folder.mkdir(parents=True)
        assert CommitLedger(str(tmp_path / earlier), "job", "sink").staging.parent == folder


async def tell_ids(event: InputEvent, ctx: RunnerContext) -> None:
    await Turn()
    ctx.send_event(OutputEvent((event.input[0], ctx.run_id)))


def stored_by_the_first_version(*keys: Any) -> bytes:
    """Runs of keys in flight, with the ids that the first version gave them."""
    made = AgentHarness(Agent("a").add_action("tell", [InputEvent], tell_ids))
    made.send([(key, 1) for key in keys])
    saved, entries = decode(made.save())
    saved.parked = [
        (key, action.replace(action.split("/")[-3], f"{stable_hash(key):08x}{stable_hash((key, 1)):08x}-1"))
        for key, action in saved.parked
    ]
    made.close()
    return encode((saved, entries))


def run_ids(restore: bytes) -> tuple[dict[str, str], str]:
    again = AgentHarness(Agent("a").add_action("tell", [InputEvent], tell_ids), restore=restore)
    log = MemoryLog()
    again.head.runtime.log = log
    again.resume()
    again.calls.finish_all()
    found = dict(again.values)
    again.close()
    return found, again.head.step.uid


def test_runs_in_state_of_the_first_version_keep_their_ids() -> None:
    found, _ = run_ids(stored_by_the_first_version("ann", "ben"))
    assert found == {key: f"{stable_hash(key):08x}{stable_hash((key, 1)):08x}-1" for key in ("ann", "ben")}


def test_runs_that_shared_an_id_in_state_of_the_first_version_start_again_with_separate_ids() -> None:
    found, uid = run_ids(stored_by_the_first_version(*TWINS))
    assert found == {key: f"{identity_of(key, uid)}-1" for key in TWINS}
