"""Questions and answers as small files below the checkpoint directory.

A question is a file that appears once, under a name made of its call's id; so is its answer. Whoever links the answer's
file first has answered: a person through the command line, or the clock when the question expires. One thread per
process looks for answers, however many questions wait.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import logging
import os
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberflow.errors import CheckpointUnusable, InvalidArgument, describe_cause
from emberflow.operators.guard_approvals import HumanAnswer, Question

_log = logging.getLogger("emberflow.agents")
APPROVALS_FOLDER = "approvals"
POLL_S = 0.2
_QUESTION, _ANSWER, _HISTORY = ".question.json", ".answer.json", "history.jsonl"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """A question as the command line sees it."""

    id: str
    question: str
    options: tuple[str, ...]
    agent: str
    action: str
    key: str
    asked_ms: int
    expires_at_ms: int | None
    answer: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in self.__slots__}
        return {**shown, "options": list(self.options)}


def short_id(call_id: str) -> str:
    return hashlib.sha256(call_id.encode()).hexdigest()[:12]


def approvals_in(checkpoint_dir: str | None) -> FileApprovals | None:
    """Where the agents of a job ask; None without a directory that people can reach."""
    return FileApprovals(Path(checkpoint_dir) / APPROVALS_FOLDER) if checkpoint_dir else None


class FileApprovals:
    """Where an agent's questions go. Used from the calls' event loop."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def ask(self, question: Question) -> HumanAnswer | None:
        name = short_id(question.call_id)
        asked_ms = await asyncio.to_thread(self._post, name, question)
        due_ms = None if question.expires_ms is None else asked_ms + question.expires_ms
        found = await _watcher(self._directory).wait(name, due_ms)
        if found.get("expired"):
            return None
        return HumanAnswer(found["answer"], found.get("note", ""), found.get("by", ""))

    def settled(self, call_id: str) -> None:
        name = short_id(call_id)
        question, answer = self._directory / f"{name}{_QUESTION}", self._directory / f"{name}{_ANSWER}"
        asked, answered = _read(question), _read(answer)
        if asked is not None and answered is not None:
            line = json.dumps({**asked, "answer": answered}) + "\n"
            with (self._directory / _HISTORY).open("a", encoding="utf-8") as file:
                file.write(line)
        # The answer last: a question without its answer would be asked again.
        question.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)

    def _post(self, name: str, question: Question) -> int:
        """When the question was first asked."""
        path = self._directory / f"{name}{_QUESTION}"
        now_ms = time.time_ns() // 1_000_000
        body = {
            "version": _VERSION,
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
        if not _link_once(path, body):
            found = _read(path)
            if found is not None:
                return int(found["asked_ms"])
        _log.info("agent %r asks: emberflow approvals list %s", question.agent, self._directory.parent)
        return now_ms


class _Watcher:
    """Looks for the answers that somebody in this process waits for."""

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
            return  # A disk that is away for a moment; the question waits.
        now_ms = time.time_ns() // 1_000_000
        for name, entries in waiting.items():
            due = min((due_ms for _, _, due_ms in entries if due_ms is not None), default=None)
            path = self._directory / f"{name}{_ANSWER}"
            if path.name not in there and due is not None and due <= now_ms:
                # Linked like an answer: one that comes in this very moment wins, or is refused.
                _link_once(path, {"version": _VERSION, "expired": True, "answered_ms": now_ms})
            elif path.name not in there:
                continue
            found = _read(path)
            if found is not None:
                for loop, future, _ in entries:
                    _settle(loop, future, found)


_watchers: dict[Path, _Watcher] = {}
_watchers_lock = threading.Lock()


def _watcher(directory: Path) -> _Watcher:
    with _watchers_lock:
        return _watchers.setdefault(directory, _Watcher(directory))


def _settle(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], found: dict[str, Any]) -> None:
    def settle() -> None:
        if not future.done():
            future.set_result(found)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # The loop has ended, and with it everybody who waited.


# what people do


def questions(checkpoint_dir: str | Path, *, answered: bool = False) -> list[StoredQuestion]:
    """Open questions, the oldest first; with `answered` also those that have an answer, as far as they are kept."""
    folder = Path(checkpoint_dir) / APPROVALS_FOLDER
    if not Path(checkpoint_dir).is_dir():
        raise InvalidArgument(
            f"there is no directory {str(checkpoint_dir)!r}",
            way_out="name the checkpoint directory of the job",
        )
    found: list[StoredQuestion] = []
    for path in sorted(folder.glob(f"*{_QUESTION}")):
        body = _read(path)
        if body is not None:
            found.append(_stored(body, _read(path.with_name(f"{body['id']}{_ANSWER}"))))
    if answered and (folder / _HISTORY).exists():
        for line in (folder / _HISTORY).read_text(encoding="utf-8").splitlines():
            try:
                body = json.loads(line)
                found.append(_stored(body, body["answer"]))
            except (ValueError, KeyError):
                continue  # Torn by a crash.
    chosen = [item for item in found if answered or item.answer is None]
    return sorted(chosen, key=lambda item: (item.asked_ms, item.id))


def give_answer(
    checkpoint_dir: str | Path, question_id: str, answer: str, *, note: str = "", by: str | None = None
) -> StoredQuestion:
    """Answers an open question, named by its id or the beginning of it; raises InvalidArgument."""
    known = questions(checkpoint_dir, answered=True)
    chosen = [item for item in known if item.id.startswith(question_id)] if question_id else []
    if len({item.id for item in chosen}) != 1:
        what = "is the beginning of several" if chosen else "names no"
        raise InvalidArgument(
            f"{question_id!r} {what} question{'s' if chosen else ''}",
            way_out=f"emberflow approvals list {checkpoint_dir}",
        )
    # A question that was asked anew is open although it was answered once.
    question = next((item for item in chosen if item.answer is None), chosen[-1])
    if question.answer is not None:
        raise _too_late(question)
    if question.options and answer not in question.options:
        raise InvalidArgument(
            f"{answer!r} is no answer to {question.question!r}",
            way_out=f"one of {', '.join(map(repr, question.options))}",
        )
    path = Path(checkpoint_dir) / APPROVALS_FOLDER / f"{question.id}{_ANSWER}"
    body = {
        "version": _VERSION,
        "answer": answer,
        "note": note,
        "by": _user() if by is None else by,
        "answered_ms": time.time_ns() // 1_000_000,
    }
    if not _link_once(path, body):
        raise _too_late(question)
    return question


def _too_late(question: StoredQuestion) -> InvalidArgument:
    how = "has expired" if question.answer and question.answer.get("expired") else "was answered already"
    return InvalidArgument(f"the question {question.id} {how}", way_out="emberflow approvals list DIR --all")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _stored(body: dict[str, Any], answer: dict[str, Any] | None) -> StoredQuestion:
    return StoredQuestion(
        id=body["id"],
        question=body["question"],
        options=tuple(body["options"]),
        agent=body["agent"],
        action=body["action"],
        key=body["key"],
        asked_ms=body["asked_ms"],
        expires_at_ms=body["expires_at_ms"],
        answer=answer,
    )


# files


def _link_once(path: Path, body: dict[str, Any]) -> bool:
    """Writes a file that appears whole or not at all; False if there is one already."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(body, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True
    except OSError as error:
        raise CheckpointUnusable(
            f"the approval {path} cannot be written",
            cause=describe_cause(error),
            way_out="free space, or let this user write there",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointUnusable(
            f"the approval {path} cannot be read", cause=describe_cause(error), way_out="remove the file"
        ) from error
