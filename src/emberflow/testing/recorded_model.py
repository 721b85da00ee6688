"""`RecordedChatModel`: a real model's replies, recorded once in a cassette file and replayed in tests."""

from __future__ import annotations

import difflib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from emberflow.agents.models.chat_connection import call
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.chat_model import BaseChatModelConnection
from emberflow.agents.tools.function_tool import Tool
from emberflow.errors import InvalidAgent, ResourceFailed
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType, Secret
from emberflow.testing.cassette import Cassette, append_entry, entry_line, load_cassette, request_text

Mode = Literal["replay", "record", "auto"]
_MODES = ("replay", "record", "auto")


class RecordedChatModel(BaseChatModelConnection):
    """Answers from a cassette:

        ResourceDescriptor(clazz=RecordedChatModel, cassette="tests/cassettes/refunds.jsonl")

    - `replay` (default) uses no network; a request that is not recorded raises ResourceFailed;
    - `record` calls `connection` (the name of a connection resource, a descriptor or a connection) and appends its
    replies. Delete the file first to record again: earlier recordings are replayed first;
    - `auto` replays what is recorded and records the rest.

    A request that was recorded several times gets its replies in that order, then the last one repeatedly; each process
    counts separately. A run that is repeated after a crash therefore sees the same replies only if equal requests have equal
    replies: put what distinguishes a request (such as an order's number) into its text.

    Errors are not recorded. Secrets are not written: settings with the name of a secret, the values of a descriptor's
    `Secret`s, and strings that look like a key. Only writers of one process may share a file.
    """

    def __init__(
        self,
        cassette: str | Path,
        *,
        mode: Mode = "replay",
        connection: str | ResourceDescriptor | BaseChatModelConnection | None = None,
    ) -> None:
        if mode not in _MODES:
            raise InvalidAgent(
                f"a recorded model has no mode {mode!r}", way_out=f"use one of {', '.join(_MODES)}"
            )
        if mode != "replay" and connection is None:
            raise InvalidAgent(
                f"a recorded model with mode {mode!r} needs a model to call",
                way_out="connection=ResourceDescriptor(clazz=…), or the name of a chat model connection",
            )
        self.cassette = Path(cassette)
        self.mode: Mode = mode
        self.connection = connection
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Cassette | None = None
        self._asked: BaseChatModelConnection | None = None
        self._owned: BaseChatModelConnection | None = None
        self._secrets: list[str] = []

    def open(self) -> None:
        """Reads the cassette; raises CorruptData with the number of a line that cannot be read."""
        with self._lock:
            self._prepare()

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()
        self._loaded = self._asked = self._owned = None

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool] | None = None, **kwargs: Any
    ) -> ChatMessage:
        names = [tool.name for tool in tools or ()]
        with self._lock:
            cassette = self._prepare()
            request = request_text(messages, names, kwargs, self._secrets)
            known = None if self.mode == "record" else cassette.take(request)
            if known is not None:
                return known
            if self.mode == "replay":
                raise _not_recorded(cassette, request)
            if self._asked is None:
                self._asked = self._connect()
                request = request_text(messages, names, kwargs, self._secrets)
        reply = await call(self._asked, messages, tools, **kwargs)
        append_entry(self.cassette, entry_line(request, reply, self._secrets))
        with self._lock:
            cassette.add(request, reply)
        return reply

    def _prepare(self) -> Cassette:
        if self._loaded is None:
            # Before any request: a line must not be appended to a file that cannot be read back.
            self._loaded = load_cassette(self.cassette, may_be_missing=self.mode != "replay")
            if self.mode == "record":
                # Not for "auto": if everything is recorded, a run needs neither a network nor a key.
                self._asked = self._connect()
        return self._loaded

    def _connect(self) -> BaseChatModelConnection:
        found: Any = self.connection
        if isinstance(found, str):
            if not hasattr(self, "resource_context"):
                raise ResourceFailed(
                    f"the recorded model needs the connection {found!r}, but it is not part of an agent",
                    way_out="pass the connection itself, or its descriptor",
                )
            found = self.resource_context.get_resource(found, ResourceType.CHAT_MODEL_CONNECTION)
        elif isinstance(found, ResourceDescriptor):
            arguments = {
                name: value.resolve() if isinstance(value, Secret) else value
                for name, value in found.arguments.items()
            }
            self._secrets = [
                arguments[name]
                for name, value in found.arguments.items()
                if isinstance(value, Secret) and arguments[name]
            ]
            found = self._owned = found.clazz(**arguments)
            if hasattr(self, "resource_context"):
                found.resource_context = self.resource_context
            found.open()
        if not isinstance(found, BaseChatModelConnection):
            raise ResourceFailed(
                f"a recorded model needs a chat model connection, got {type(found).__name__}"
            )
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"cassette": self.cassette, "mode": self.mode, "connection": self.connection}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["cassette"], mode=state["mode"], connection=state["connection"])

    def __repr__(self) -> str:
        return f"RecordedChatModel({str(self.cassette)!r}, mode={self.mode!r})"


def _not_recorded(cassette: Cassette, request: str) -> ResourceFailed:
    near = cassette.nearest(request)
    if near is None:
        cause = "nothing is recorded in it"
    else:
        # Line by line: often only one word of a long conversation differs.
        compared = list(difflib.unified_diff(_lines(near), _lines(request), lineterm="", n=0))[2:]
        changes = [line for line in compared if not line.startswith("@@")]
        shown = "\n    ".join(line if len(line) <= 300 else line[:299] + "…" for line in changes[:12])
        cause = f"the nearest request is in line {cassette.lines[near]} (- recorded, + asked):\n    {shown}"
    short = request if len(request) <= 600 else request[:599] + "…"
    return ResourceFailed(
        f"the cassette {cassette.name} has no reply to the request {short}",
        cause=cause,
        way_out="record it with mode='auto' and connection=…, or make the request the same in every run",
    )


def _lines(request: str) -> list[str]:
    return json.dumps(json.loads(request), indent=1, ensure_ascii=False).splitlines()
