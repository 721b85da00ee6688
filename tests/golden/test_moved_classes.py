"""What the version before stable names has stored about classes that have moved since: their old modules, and the
identities of their objects. The files were written by that version."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from emberflow.errors import BudgetExceeded, RecordedError
from emberflow.events.codecs import PICKLE, decode
from emberflow.events.identity import fingerprint
from emberflow.events.packets import decode_packet
from emberflow.operators.agents.guards.questions import HumanAnswer
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.plan.json_functions import from_json
from emberflow.streams import RuntimeExecutionMode, Types

FILES = Path(__file__).parent / "v1"
PUBLIC = (FILES / "public_names.txt").read_text().split()
ARGUMENTS = {
    "error": BudgetExceeded("spent", cause="too much", way_out="earn", committed="nothing"),
    "recorded error": RecordedError("gone", names=("shop.Gone", "builtins.Exception")),
    "class": BudgetExceeded,
    "mode": RuntimeExecutionMode.BATCH,
    "type": Types.INT(),
}


def _reference(path: str) -> bytes:
    """A class or function, pickled."""
    module, _, name = path.rpartition(".")
    return f"c{module}\n{name}\n.".encode()


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_name_is_found_under_its_old_module(path: str) -> None:
    found = decode(bytes([PICKLE]) + _reference(path))
    assert found.__name__ == path.rpartition(".")[2]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_a_recorded_call_keeps_its_identity(name: str) -> None:
    """Otherwise a run that is continued by this version fails with ReplayMismatch."""
    assert fingerprint(ARGUMENTS[name]) == json.loads((FILES / "arguments.json").read_text())[name]


def test_a_packet_in_the_record_of_a_batch() -> None:
    packet = decode_packet((FILES / "packet-with-answer.bin").read_bytes())
    [answer] = packet.batch.values
    assert type(answer) is HumanAnswer
    assert (answer, answer.note, answer.by) == ("yes", "fine", "ann")


def test_a_function_by_value_in_a_plan() -> None:
    """Its annotations refer to classes of emberflow."""
    stored = base64.b64encode(_reference("emberflow.operators.runner_context.RunnerContext")).decode()
    assert from_json({"name": "act", "cloudpickle": stored}) is RunnerContext
