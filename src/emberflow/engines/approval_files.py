"""Questions and answers as small files below the checkpoint directory: their names, how one is written and read.

A question is a file that appears once, under a name made of its call's id; so is its answer. Whoever links the answer's
file first has answered.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

from emberflow.errors import CheckpointUnusable, describe_cause
from emberflow.events.identity import text_identity
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.events.stored_files import sync_folder

APPROVALS_FOLDER = "approvals"
QUESTION, ANSWER, HISTORY = ".question.json", ".answer.json", "history.jsonl"
VERSION = 1


def question_name(directory: Path, call_id: str) -> str:
    """What the files of a question begin with. One that the first version asked keeps its shorter name."""
    earlier = hashlib.sha256(call_id.encode()).hexdigest()[:12]
    if any((directory / f"{earlier}{ending}").exists() for ending in (QUESTION, ANSWER)):
        asked = read(directory / f"{earlier}{QUESTION}")
        if asked is None or asked.get("call_id") == call_id:
            return earlier
    return text_identity(call_id)


def link_once(path: Path, body: dict[str, Any]) -> bool:
    """Writes a file that appears whole or not at all; False if there is one already."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        make_private_folder(path.parent)
        with open(temporary, "w", encoding="utf-8", opener=open_private) as file:
            json.dump(body, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        sync_folder(path.parent)
        return True
    except OSError as error:
        raise CheckpointUnusable(
            f"the approval {path} cannot be written",
            cause=describe_cause(error),
            way_out="free space, or let this user write there",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointUnusable(
            f"the approval {path} cannot be read", cause=describe_cause(error), way_out="remove the file"
        ) from error
