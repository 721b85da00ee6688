"""The recorded model: cassettes are written, replayed, and rejected with a reason."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.agents.models.chat_model import BaseChatModelConnection
from emberflow.agents.tools.function_tool import FunctionTool, Tool
from emberflow.errors import CorruptData, InvalidAgent, ResourceFailed
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType, Secret
from emberflow.testing.cassette import HEADER, load_cassette
from emberflow.testing.recorded_model import RecordedChatModel
from emberflow.testing.scripted_model import Reply, ScriptedChatModel, ScriptedError, When

GOLDEN = Path(__file__).parents[2] / "golden" / "v1" / "cassette.jsonl"
KEY = "sk-abcdefghijklmnopqrstuvwxyz"


def user(text: str) -> ChatMessage:
    return ChatMessage(content=text)


def ask(model: BaseChatModelConnection, text: str, **settings: Any) -> str:
    return asyncio.run(model.chat([user(text)], **settings)).content


def add(a: int, b: int) -> int:
    return a + b


class Vendor(BaseChatModelConnection):
    """A service whose answers repeat its key, as careless services do."""

    def __init__(self, api_key: str = "", token_budget: int = 0) -> None:
        self.api_key = api_key
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> ChatMessage:
        assert self.is_open
        text = f"{messages[-1].content}, with {self.api_key}"
        extra = {"headers": {"Authorization": "Basic abc", "x-request": "1"}}
        return ChatMessage(role=MessageRole.ASSISTANT, content=text, extra_args=extra)


def test_record_then_replay(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cassette.jsonl"
    live = RecordedChatModel(path, mode="record", connection=ScriptedChatModel(["one", "two", "three"]))
    assert [ask(live, "a", temperature=0.1), ask(live, "b"), ask(live, "a", temperature=0.1)] == [
        "one",
        "two",
        "three",
    ]

    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == HEADER
    assert json.loads(lines[1]) == {
        "request": {"messages": [{"role": "user", "content": "a"}], "settings": {"temperature": 0.1}},
        "reply": {"role": "assistant", "content": "one"},
    }

    replayed = RecordedChatModel(path)
    # In recorded order, then the last one repeatedly.
    assert [ask(replayed, "a", temperature=0.1) for _ in range(4)] == ["one", "three", "three", "three"]
    assert ask(replayed, "b") == "two"
    again = pickle.loads(pickle.dumps(replayed))
    assert ask(again, "a", temperature=0.1) == "one"


class Brief(BaseChatModelConnection):
    """A plain function whose answer is a string."""

    def chat(self, messages: Sequence[ChatMessage], tools: Any = None, **kwargs: Any) -> Any:
        return messages[-1].content.upper()


def test_a_plain_chat_that_answers_with_a_string_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "cassette.jsonl"
    assert ask(RecordedChatModel(path, mode="record", connection=Brief()), "a") == "A"
    assert ask(RecordedChatModel(path), "a") == "A"


def test_unknown_requests_name_the_nearest_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    live = RecordedChatModel(path, mode="record", connection=ScriptedChatModel(["one", "two"]))
    ask(live, "the weather in Ulm")
    ask(live, "something else")
    with pytest.raises(ResourceFailed) as raised:
        ask(RecordedChatModel(path), "the weather in Bonn")
    said = str(raised.value)
    assert str(path) in said
    assert '"content": "the weather in Bonn"' in said
    assert "nearest request is in line 2" in said
    assert '-   "content": "the weather in Ulm"' in said
    assert "mode='auto'" in said


def test_auto_records_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    service = ScriptedChatModel([When(contains="a", reply="A"), When(contains="b", reply="B")])
    for texts in (["a", "a"], ["a", "b"], ["b"]):
        model = RecordedChatModel(path, mode="auto", connection=service)
        assert [ask(model, text) for text in texts] == [text.upper() for text in texts]
    assert len(service.calls) == 2
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_auto_needs_no_key_if_everything_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = ResourceDescriptor(clazz=Vendor, api_key=Secret("VENDOR_KEY"))
    monkeypatch.setenv("VENDOR_KEY", KEY)
    model = RecordedChatModel(tmp_path / "c.jsonl", mode="auto", connection=vendor)
    ask(model, "a")
    model.close()
    monkeypatch.delenv("VENDOR_KEY")
    again = RecordedChatModel(tmp_path / "c.jsonl", mode="auto", connection=vendor)
    again.open()
    assert ask(again, "a") == "a, with ***"
    with pytest.raises(ResourceFailed, match="VENDOR_KEY"):
        ask(again, "b")


@pytest.mark.parametrize("key", [KEY, "a key of any form"])
def test_secrets_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("VENDOR_KEY", key)
    vendor = ResourceDescriptor(clazz=Vendor, api_key=Secret("VENDOR_KEY"))
    model = RecordedChatModel(tmp_path / "c.jsonl", mode="record", connection=vendor)
    settings = {
        "max_tokens": 5,
        "api_key": "plain",
        "extra_headers": {"Authorization": "Bearer plain", "x-api-key": "plain", "x-trace": "kept"},
        "access_token": "plain",
        "password": Secret("X"),
        "note": "Bearer abcdefgh12345678",
    }
    # The program itself sees the service's original answer.
    assert ask(model, f"my key is {key}", **settings) == f"my key is {key}, with {key}"

    written = (tmp_path / "c.jsonl").read_text(encoding="utf-8")
    assert key not in written
    assert "plain" not in written
    assert "abcdefgh12345678" not in written
    assert "Authorization" not in written
    assert '"x-trace": "kept"' in written
    assert '"x-request": "1"' in written
    assert '"max_tokens": 5' in written


def test_arguments_of_tools_are_kept_whatever_they_are_called(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "login", "arguments": {"password": "x"}}}
    service = ScriptedChatModel([Reply(tool_calls=[call])])
    asyncio.run(
        RecordedChatModel(tmp_path / "c.jsonl", mode="record", connection=service).chat([user("log in")])
    )
    replayed = asyncio.run(RecordedChatModel(tmp_path / "c.jsonl").chat([user("log in")]))
    assert replayed.tool_calls == [call]


def test_ids_of_calls_and_descriptions_of_tools_do_not_count() -> None:
    model = RecordedChatModel(GOLDEN)
    tools = [FunctionTool(add, description="of another time")]
    question = [ChatMessage(role=MessageRole.SYSTEM, content="Be brief."), user("What is 1 + 2?")]
    settings: dict[str, Any] = {"temperature": 0.1, "model": "m"}

    first = asyncio.run(model.chat(question, tools, **settings))
    assert first.tool_calls[0]["function"] == {"name": "add", "arguments": {"a": 1, "b": 2}}
    for name in ("id-of-the-vendor", "another id"):
        turn = replace(first, tool_calls=[{**first.tool_calls[0], "id": name}])
        result = ChatMessage(role=MessageRole.TOOL, content="3", extra_args={"external_id": name})
        last = asyncio.run(model.chat([*question, turn, result], tools, **settings))
        assert last.content == "It is 3 – as ever."
        assert last.extra_args == {"model_name": "m-1"}


def test_the_golden_cassette_is_written_the_same_way(tmp_path: Path) -> None:
    golden = load_cassette(GOLDEN, may_be_missing=False)
    replies = [reply for several in golden.replies.values() for reply in several]
    model = RecordedChatModel(tmp_path / "c.jsonl", mode="record", connection=ScriptedChatModel(replies))
    for request in golden.replies:
        data = json.loads(request)
        tools = [FunctionTool(add) for _ in data["tools"]]
        messages = [ChatMessage.from_dict(item) for item in data["messages"]]
        asyncio.run(model.chat(messages, tools, **data["settings"]))
    assert (tmp_path / "c.jsonl").read_bytes() == GOLDEN.read_bytes()


def test_replayed_values_may_be_modified() -> None:
    model = RecordedChatModel(GOLDEN)
    data = json.loads(GOLDEN.read_text(encoding="utf-8").splitlines()[1])["request"]
    messages = [ChatMessage.from_dict(item) for item in data["messages"]]
    for _ in range(2):
        reply = asyncio.run(model.chat(messages, [FunctionTool(add)], **data["settings"]))
        assert len(reply.tool_calls) == 1
        reply.tool_calls.append({})


def test_errors_are_not_recorded(tmp_path: Path) -> None:
    service = ScriptedChatModel([Reply(error=500), "ok"])
    model = RecordedChatModel(tmp_path / "c.jsonl", mode="auto", connection=service)
    with pytest.raises(ScriptedError):
        ask(model, "a")
    assert not (tmp_path / "c.jsonl").exists()
    assert ask(model, "a") == "ok"


def test_many_writers_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"

    async def ask_all(who: int) -> None:
        service = ScriptedChatModel([When(reply="x" * 10_000)])
        model = RecordedChatModel(path, mode="record", connection=service)
        await asyncio.gather(*(model.chat([user(f"{who}-{number}")]) for number in range(20)))

    def run(who: int) -> None:
        asyncio.run(ask_all(who))

    threads = [threading.Thread(target=run, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(load_cassette(path, may_be_missing=False).replies) == 80


def test_a_connection_by_name(tmp_path: Path) -> None:
    class Context:
        def get_resource(self, name: str, type: ResourceType) -> Any:
            assert (name, type) == ("live", ResourceType.CHAT_MODEL_CONNECTION)
            return ScriptedChatModel(["ok"])

    model = RecordedChatModel(tmp_path / "c.jsonl", mode="record", connection="live")
    with pytest.raises(ResourceFailed, match="not part of an agent"):
        ask(model, "a")
    model = RecordedChatModel(tmp_path / "c.jsonl", mode="record", connection="live")
    model.resource_context = Context()
    model.open()
    assert ask(model, "a") == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("nonsense\n", "line 1"),
        ('{"format": "other"}\n', "begins with"),
        ('{"format": "emberflow-cassette", "version": 2}\n', "has version 2, this release reads version 1"),
        (HEADER + "\n[]\n", "line 2"),
        (HEADER + '\n\n{"reply": {"role": "user"}}\n', "line 3"),
        (HEADER + '\n{"request": {}, "reply": {"role": "robot"}}', "its reply is not a message"),
        (HEADER + '\n{"request": {}, "reply": {"role": "user"}}\n{"request": {"mess', "line 3"),
    ],
)
def test_cassettes_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorruptData) as raised:
        RecordedChatModel(path).open()
    assert said in str(raised.value)
    assert str(path) in str(raised.value)
    assert "record it again" in str(raised.value)


def test_nothing_is_appended_to_a_truncated_cassette(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(HEADER + '\n{"request": {"mess', encoding="utf-8")
    service = ScriptedChatModel(["ok"])
    with pytest.raises(CorruptData, match="line 2"):
        ask(RecordedChatModel(path, mode="record", connection=service), "a")
    assert service.calls == []


def test_a_cassette_without_a_last_line_break_can_be_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(HEADER, encoding="utf-8")
    ask(RecordedChatModel(path, mode="record", connection=ScriptedChatModel(["ok"])), "a")
    assert ask(RecordedChatModel(path), "a") == "ok"


def test_wrong_arguments(tmp_path: Path) -> None:
    mode: Any = "play"
    with pytest.raises(InvalidAgent, match="one of replay, record, auto"):
        RecordedChatModel("c.jsonl", mode=mode)
    with pytest.raises(InvalidAgent, match="needs a model to call"):
        RecordedChatModel("c.jsonl", mode="record")
    with pytest.raises(ResourceFailed, match="there is no cassette"):
        RecordedChatModel(tmp_path / "none.jsonl").open()
