"""Questions and answers as small files in the checkpoint directory: names, reading and writing.

A question is a file that is created once, under a name derived from its call's id; so is its answer. The process that
links the answer's file first has answered.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from emberflow.errors import CheckpointUnusable, CorruptData, describe_cause
from emberflow.events.identity import text_identity
from emberflow.events.stored_files import corrupt, create_once, parse_json, read_json, sealed

APPROVALS_FOLDER = "approvals"
QUESTION, ANSWER, HISTORY = ".question.json", ".answer.json", "history.jsonl"
VERSION = 2
"""Version 1 had no checksums."""
_LOST_QUESTION = "restore the file, or delete it: the question is then asked again when the job is started, and expires as if it was new"
_LOST_ANSWER = "restore the file, or delete it, which opens the question again, and answer once more"
_QUESTION_FIELDS = ("id", "question", "options", "agent", "action", "key", "asked_ms", "expires_at_ms")


def question_name(directory: Path, call_id: str) -> str:
    """The prefix of a question's file names. A question asked by version 1 keeps its shorter name."""
    earlier = hashlib.sha256(call_id.encode()).hexdigest()[:12]
    if any((directory / f"{earlier}{ending}").exists() for ending in (QUESTION, ANSWER)):
        asked = read_question(directory / f"{earlier}{QUESTION}")
        if asked is None or asked.get("call_id") == call_id:
            return earlier
    return text_identity(call_id)


def link_once(path: Path, body: dict[str, Any]) -> bool:
    """Creates a file atomically; returns False if it exists already."""
    try:
        return create_once(path, json.dumps(sealed(body)).encode())
    except OSError as error:
        raise CheckpointUnusable(
            f"the approval {path} cannot be written",
            cause=describe_cause(error),
            way_out="free space, or give this user write permission",
        ) from error


def read_question(path: Path) -> dict[str, Any] | None:
    """The question, or None if there is no such file. Raises CorruptData, or CheckpointUnusable if the disk fails."""
    try:
        body = read_json(path, newest=VERSION, version="version", way_out=_LOST_QUESTION, unchecked=1)
    except FileNotFoundError:
        return None
    _check_question(path, body)
    return body


def read_answer(path: Path) -> dict[str, Any] | None:
    """The answer, like `read_question`."""
    try:
        body = read_json(path, newest=VERSION, version="version", way_out=_LOST_ANSWER, unchecked=1)
    except FileNotFoundError:
        return None
    if not body.get("expired") and not isinstance(body.get("answer"), str):
        raise corrupt(path, "it does not contain an answer", _LOST_ANSWER)
    return body


def history_line(question: dict[str, Any], answer: dict[str, Any]) -> str:
    return json.dumps(sealed({**question, "version": VERSION, "answer": answer})) + "\n"


def read_history(path: Path) -> list[dict[str, Any]]:
    """Settled questions with their answers. Informational, so truncated lines and lines that fail their checksum are
    skipped."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            body = parse_json(path, line, newest=VERSION, version="version", way_out="", unchecked=1)
            _check_question(path, body)
            if isinstance(body.get("answer"), dict):
                found.append(body)
        except (CorruptData, CheckpointUnusable):
            continue
    return found


def _check_question(path: Path, body: dict[str, Any]) -> None:
    missing = [name for name in _QUESTION_FIELDS if name not in body]
    if missing:
        raise corrupt(path, f"it has no {missing[0]!r}", _LOST_QUESTION)
