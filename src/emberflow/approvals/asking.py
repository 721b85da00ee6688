"""Asks people on behalf of agents and waits for the answers.

An answer comes from a person through the command line, or from the clock when the question expires. One thread per
process polls for answers, however many questions are open.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from emberflow.approvals.question_files import (
    ANSWER,
    APPROVALS_FOLDER,
    HISTORY,
    QUESTION,
    VERSION,
    history_line,
    link_once,
    question_name,
    read_answer,
    read_question,
)
from emberflow.errors import ApprovalsFailed, CheckpointUnusable, CorruptData
from emberflow.events.fence import NO_FENCE, Fence
from emberflow.events.private_files import open_private
from emberflow.operators.agents.guards.questions import HumanAnswer, Question

_log = logging.getLogger("emberflow.agents")
POLL_S = 0.2
_COMMITTED = "the run that asked continues when the job is started again"


def approvals_in(checkpoint_dir: str | None, fence: Fence = NO_FENCE) -> FileApprovals | None:
    """The approvals of a job; None without a checkpoint directory that people can access."""
    return FileApprovals(Path(checkpoint_dir) / APPROVALS_FOLDER, fence) if checkpoint_dir else None


class FileApprovals:
    """Asks the questions of a job's agents. Used from the event loop of the calls."""

    def __init__(self, directory: Path, fence: Fence = NO_FENCE) -> None:
        self._directory = directory
        self._fence = fence

    async def ask(self, question: Question) -> HumanAnswer | None:
        try:
            name = await asyncio.to_thread(question_name, self._directory, question.call_id)
            asked_ms = await asyncio.to_thread(self._post, name, question)
            due_ms = None if question.expires_ms is None else asked_ms + question.expires_ms
            found = await _watcher(self._directory).wait(name, due_ms)
        except (CorruptData, CheckpointUnusable) as error:
            raise ApprovalsFailed(
                error.message, cause=error.cause, way_out=error.way_out, committed=_COMMITTED
            ) from error
        if found.get("expired"):
            return None
        return HumanAnswer(found["answer"], found.get("note", ""), found.get("by", ""))

    def settled(self, call_id: str) -> None:
        # A later start of the job may still need the answer.
        self._fence.check_if_reachable()
        try:
            name = question_name(self._directory, call_id)
            question, answer = self._directory / f"{name}{QUESTION}", self._directory / f"{name}{ANSWER}"
            asked, answered = read_question(question), read_answer(answer)
        except (CorruptData, CheckpointUnusable) as error:
            # The answer is in the call log; only the history is affected.
            _log.warning("the files of a settled question were not removed: %s", error)
            return
        if asked is not None and answered is not None:
            line = history_line(asked, answered)
            with open(self._directory / HISTORY, "a", encoding="utf-8", opener=open_private) as file:
                file.write(line)
        # Remove the answer last: a question without its answer would be asked again.
        question.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)

    def _post(self, name: str, question: Question) -> int:
        """Writes the question unless it exists; returns when it was first asked."""
        self._fence.check_if_reachable()
        path = self._directory / f"{name}{QUESTION}"
        now_ms = time.time_ns() // 1_000_000
        body = {
            "version": VERSION,
            "id": name,
            "call_id": question.call_id,
            "question": question.question,
            "options": list(question.options),
            "agent": question.agent,
            "action": question.action,
            "key": question.key,
            "asked_ms": now_ms,
            "expires_at_ms": None if question.expires_ms is None else now_ms + question.expires_ms,
        }
        if not link_once(path, body):
            found = read_question(path)
            if found is not None:
                return int(found["asked_ms"])
        _log.info("agent %r asks: emberflow approvals list %s", question.agent, self._directory.parent)
        return now_ms


class _Watcher:
    """Polls for the answers that calls of this process wait for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], int | None]]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    async def wait(self, name: str, due_ms: int | None) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        entry = (loop, future, due_ms)
        with self._lock:
            self._waiting.setdefault(name, []).append(entry)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._look, name=f"emberflow-approvals {self._directory}", daemon=True
                )
                self._thread.start()
        try:
            return await future
        finally:
            with self._lock:
                left = [item for item in self._waiting.get(name, ()) if item is not entry]
                if left:
                    self._waiting[name] = left
                else:
                    self._waiting.pop(name, None)

    def _look(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                waiting = {name: list(entries) for name, entries in self._waiting.items()}
            self._round(waiting)
            time.sleep(POLL_S)

    def _round(self, waiting: dict[str, list[tuple[Any, Any, int | None]]]) -> None:
        try:
            there = {entry.name for entry in os.scandir(self._directory)}
        except OSError:
            return  # The disk may be unavailable for a moment; the question stays open.
        now_ms = time.time_ns() // 1_000_000
        for name, entries in waiting.items():
            due = min((due_ms for _, _, due_ms in entries if due_ms is not None), default=None)
            path = self._directory / f"{name}{ANSWER}"
            expired = due is not None and due <= now_ms
            if path.name not in there and not expired:
                continue
            try:
                if path.name not in there:
                    # Linked like an answer: if a person answers at the same moment, exactly one of the two wins.
                    link_once(path, {"version": VERSION, "expired": True, "answered_ms": now_ms})
                found = read_answer(path)
            except (CorruptData, CheckpointUnusable) as error:
                found = error
            if found is not None:
                for loop, future, _ in entries:
                    _settle(loop, future, found)


_watchers: dict[Path, _Watcher] = {}
_watchers_lock = threading.Lock()


def _watcher(directory: Path) -> _Watcher:
    with _watchers_lock:
        return _watchers.setdefault(directory, _Watcher(directory))


def _settle(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], found: dict[str, Any] | Exception
) -> None:
    def settle() -> None:
        if future.done():
            return
        if isinstance(found, Exception):
            future.set_exception(found)
        else:
            future.set_result(found)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # The loop has ended, and with it all waiting calls.
