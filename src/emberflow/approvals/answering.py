"""Lists agents' questions and answers them; used by the command line."""

from __future__ import annotations

import getpass
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberflow.approvals.question_files import (
    ANSWER,
    APPROVALS_FOLDER,
    HISTORY,
    QUESTION,
    VERSION,
    link_once,
    read_answer,
    read_history,
    read_question,
)
from emberflow.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """A question as people see it."""

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


def questions(checkpoint_dir: str | Path, *, answered: bool = False) -> list[StoredQuestion]:
    """Open questions, oldest first; with `answered` also answered ones that are still on record."""
    folder = Path(checkpoint_dir) / APPROVALS_FOLDER
    if not Path(checkpoint_dir).is_dir():
        raise InvalidArgument(
            f"there is no directory {str(checkpoint_dir)!r}",
            way_out="name the checkpoint directory of the job",
        )
    found: list[StoredQuestion] = []
    for path in sorted(folder.glob(f"*{QUESTION}")):
        body = read_question(path)
        if body is None:
            continue
        answer = read_answer(path.with_name(f"{body['id']}{ANSWER}"))
        # The job removes a settled question before its answer: without both, it was settled just now.
        if answer is not None or path.exists():
            found.append(_stored(body, answer))
    if answered:
        found += [_stored(body, body["answer"]) for body in read_history(folder / HISTORY)]
    chosen = [item for item in found if answered or item.answer is None]
    return sorted(chosen, key=lambda item: (item.asked_ms, item.id))


def give_answer(
    checkpoint_dir: str | Path, question_id: str, answer: str, *, note: str = "", by: str | None = None
) -> StoredQuestion:
    """Answers an open question, given by its id or a prefix of it; raises InvalidArgument."""
    known = questions(checkpoint_dir, answered=True)
    chosen = [item for item in known if item.id.startswith(question_id)] if question_id else []
    if len({item.id for item in chosen}) != 1:
        what = "matches several" if chosen else "matches no"
        raise InvalidArgument(
            f"{question_id!r} {what} question{'s' if chosen else ''}",
            way_out=f"emberflow approvals list {checkpoint_dir}",
        )
    # A question that is asked again is open although it was answered before.
    question = next((item for item in chosen if item.answer is None), chosen[-1])
    if question.answer is not None:
        raise _too_late(question)
    if question.options and answer not in question.options:
        raise InvalidArgument(
            f"{answer!r} is not an option of {question.question!r}",
            way_out=f"answer with one of {', '.join(map(repr, question.options))}",
        )
    path = Path(checkpoint_dir) / APPROVALS_FOLDER / f"{question.id}{ANSWER}"
    body = {
        "version": VERSION,
        "answer": answer,
        "note": note,
        "by": _user() if by is None else by,
        "answered_ms": time.time_ns() // 1_000_000,
    }
    if not link_once(path, body):
        raise _too_late(question)
    return question


def _too_late(question: StoredQuestion) -> InvalidArgument:
    how = "has expired" if question.answer and question.answer.get("expired") else "was already answered"
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
