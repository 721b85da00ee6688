"""No stored byte names a module of ours: moving a file must not make stored state unreadable."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from emberflow import errors
from emberflow.agents import (
    ChatMessage,
    ChatRequestEvent,
    ChatResponseEvent,
    ToolRequestEvent,
    ToolResponseEvent,
)
from emberflow.agents.models.chat_message import MessageRole
from emberflow.agents.models.image import Image
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.agents.models.token_usage import TokenUsage
from emberflow.engines.job.manifest import FORMAT_VERSION
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, SourceState
from emberflow.errors import BudgetExceeded, CorruptData, EmberflowError, RecordedError
from emberflow.events.agent_events import ErrorEvent, Event, InputEvent, OutputEvent
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import fingerprint
from emberflow.events.list_keys import ListKey
from emberflow.events.memory_events import MEMORY_EVENTS, AgentRunBeginEvent
from emberflow.events.stored_types import HOMES, class_before, stable_path, stored_types
from emberflow.events.types.instant import Instant
from emberflow.events.types.row import RowShape
from emberflow.operators.agents.calls.durable_calls import RAISED, CallRecord
from emberflow.operators.agents.calls.stored_errors import StoredError, stored
from emberflow.operators.agents.guards.attempts import Failure
from emberflow.operators.agents.guards.delayed_events import Delayed
from emberflow.operators.agents.guards.questions import HumanAnswer
from emberflow.operators.agents.outcome import ActionOutcome
from emberflow.operators.far_timers import FarTimers
from emberflow.operators.scope import SavedScope
from emberflow.plan.agents.options import ErrorHandling
from emberflow.state.entry import SharedKey
from emberflow.state.memory_object import MemoryRef
from emberflow.state.paged_list import PagedList
from emberflow.state.paged_map import PagedMap
from emberflow.state.pages import Fields, Node, PageRef
from emberflow.windowing.windows import CountWindow, GlobalWindow, TimeWindow
from tests.golden.group_state import read
from tests.golden.stored_job import BACKENDS

NEWEST = Path(__file__).parents[1] / "golden" / f"v{FORMAT_VERSION}"
MODULE_PATH = b"emberflow."
EVENT = InputEvent(("a", 1))
ERROR = stored(BudgetExceeded("spent", cause="too much"), attempts=2)
VALUES: list[Any] = [
    AgentRunBeginEvent(key="a", value={"n": 1}),
    *(kind.of_json("a", {"n": 1}) for kind in MEMORY_EVENTS.values()),
    ActionOutcome(sent=[EVENT], writes=[], error=ERROR, later=[(1, EVENT, None)]),
    CallRecord("u/k-1/1/1", "price", "digest", "price('a')", RAISED, ERROR),
    ChatMessage(role="system", content="hello", extra_args={"usage": 1}),
    Checkpoint(epoch=3, sources={"s": SourceState(positions=[1], ended=[True])}),
    Delayed(EVENT, early=True),
    ErrorEvent("act", EVENT, "ValueError", "no", attempts=3),
    Event("step", {"n": 1}),
    FarTimers([(5, 7, 9, (256,), 2, 40, 30, [(7, "a", 1), (9, ("b", 2), 2)])]),
    Failure(action="act", error_type="ValueError", message="no", attempts=2),
    Fields({"profile": Node({"name": "Bob"}), "plain": {"a": 1}}, True),
    HumanAnswer("yes", "fine", "ann"),
    EVENT,
    Image(url="https://x.test/a.png"),
    Instant(5, 6_000_000),
    ListKey(["a", ListKey([1])]),
    MemoryRef("short-term", "profile.name"),
    MessageRole.TOOL,
    Node({"name": "Bob"}),
    OutputEvent(None),
    OutputSchema({"type": "object"}),
    PageRef((3, 4), 5_000, True, [1, 2]),
    PagedList([1, None], (256, 264), 9, 700, 2),
    PagedMap((256,), 4, 90, 95, 3),
    RowShape(("name", "age")),
    SavedScope(watermark=5, event_timers=[(1, ["a"])], ended=True, parked=[("a", "act")]),
    SharedKey.BROADCAST,
    SourceState(positions=[[1, 2]], ended=[False]),
    ERROR,
    TimeWindow(0, 60_000),
    CountWindow(3),
    GlobalWindow(),
    TokenUsage(prompt_tokens=1, total_tokens=1),
    ChatRequestEvent("model", "hi", {"name": "Ann"}),
    ChatResponseEvent("key-1.1", ChatMessage(role="assistant", content="hello"), 1, 2.5),
    ToolRequestEvent("model", [{"id": "1", "function": {"name": "add", "arguments": {"a": 1}}}]),
    ToolResponseEvent("key-1.2", {"1": 3}),
]


def test_there_is_a_value_of_every_stored_type() -> None:
    assert sorted(type(value).__name__ for value in VALUES) == sorted(HOMES)
    assert stored_types().keys() == HOMES.keys()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_stored_type_is_restored_without_its_module(value: Any) -> None:
    for data in (encode(value), pickle.dumps(value), cloudpickle.dumps(value)):
        assert MODULE_PATH not in data
    for found in (decode(encode(value)), copy.copy(value), copy.deepcopy(value)):
        assert type(found) is type(value)
        assert found == value
    assert fingerprint(decode(encode(value))) == fingerprint(value)
    assert getattr(decode(encode(value)), "__dict__", None) == getattr(value, "__dict__", None)


@pytest.mark.parametrize(
    "error", [BudgetExceeded("spent", way_out="earn"), RecordedError("gone", names=("x.Gone",))]
)
def test_an_error_is_restored_without_its_module(error: EmberflowError) -> None:
    assert MODULE_PATH not in encode(error)
    assert MODULE_PATH not in encode(stored(error))
    found = decode(encode(error))
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stored_job_names_no_module(backend: str) -> None:
    files = [path for path in (NEWEST / f"job-{backend}").rglob("*") if path.is_file()]
    assert len(files) > 8
    assert [
        path.name for path in files if MODULE_PATH in path.read_bytes().replace(b"emberflow.json", b"")
    ] == []


def test_a_stored_group_names_no_module() -> None:
    hot, cold = read(NEWEST / "agent_group.json")
    assert MODULE_PATH not in b"".join((hot, *cold.held.values()))


def test_a_record_of_a_newer_version() -> None:
    data = encode(ERROR)
    assert data.count(b"StoredError\x94K\x01") == 1
    with pytest.raises(CorruptData, match=r"the record 'StoredThing' is unknown[\s\S]*update emberflow"):
        decode(data.replace(b"StoredError", b"StoredThing"))
    with pytest.raises(CorruptData, match=r"version 2 of the record 'StoredError' is unknown"):
        decode(data.replace(b"StoredError\x94K\x01", b"StoredError\x94K\x02"))


def test_a_record_without_a_field_that_was_added_later() -> None:
    """As written by the version before the field was added."""
    known = stored_types()["StoredError"]
    found = known.read(1, {"names": ("builtins.ValueError",), "message": "no"})
    assert found == StoredError(names=("builtins.ValueError",), message="no")


def test_a_record_that_lacks_a_field() -> None:
    with pytest.raises(CorruptData, match=r"a stored record 'StoredError' lacks its field 'names'"):
        stored_types()["StoredError"].read(1, {"message": "no"})


def test_a_record_with_a_field_of_a_newer_version() -> None:
    """Without it, the next checkpoint would lose what the newer version stored."""
    fields = {"names": ("builtins.ValueError",), "message": "no", "severity": 3}
    with pytest.raises(
        CorruptData, match=r"field 'severity' of the record 'StoredError'[\s\S]*update emberflow"
    ):
        stored_types()["StoredError"].read(1, fields)


class Refused(EmberflowError):
    """A user's error, with a constructor of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"refused {number}", way_out="ask again")
        self.number = number


class StepFailed(EmberflowError):
    """A user's error, with the name of one of ours."""


class Gone(RecordedError):
    """A user's error."""


def test_an_error_of_a_user_is_stored_with_its_class_and_attributes() -> None:
    found = decode(encode(Refused(3)))
    assert (type(found), found.number, found.args, str(found)) == (
        Refused,
        3,
        ("refused 3",),
        str(Refused(3)),
    )
    assert type(decode(encode(StepFailed("a")))) is StepFailed
    gone = decode(encode(Gone("a", names=("x.Gone",))))
    assert (type(gone), gone.names) == (Gone, ("x.Gone",))


def test_our_error_is_not_mistaken_for_a_users_of_the_same_name() -> None:
    assert type(decode(encode(errors.StepFailed("a")))) is errors.StepFailed
    marker = errors.from_marker(errors.to_marker(errors.StepFailed("a")))
    assert type(marker) is errors.StepFailed


def test_a_public_class_that_has_moved_is_found_and_is_the_same_key() -> None:
    # Protocol 2 writes names without their lengths.
    now = pickle.dumps(ErrorHandling.SKIP, 2)
    before = now.replace(b"emberflow.plan.agents.options", b"emberflow.plan.agent_options")
    assert b"agent_options" in before
    assert decode(b"\x01" + before) is ErrorHandling.SKIP
    assert stable_path(ErrorHandling) == "emberflow.plan.agent_options.ErrorHandling"
    assert stable_path(HumanAnswer) == "emberflow.operators.guard_approvals.HumanAnswer"


def test_old_names_resolve_to_the_current_classes() -> None:
    for name, home in HOMES.items():
        assert class_before(home.before, name) is stored_types()[name].kind
