"""Dead letters as files, without the job that would have written them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.dead_letters.letter_files import (
    LETTERS,
    LetterEncoder,
    RedriveSource,
    letters_folder,
)


def letter(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"{number:04d}-1",
        "agent": "refunds",
        "action": "decide",
        "event_type": "_input_event",
        "key": f"user-{number}",
        "input": {"amount": number},
        "timestamp": None,
        "error_type": "ValueError",
        "error": f"bad {number}",
        "attempts": 3,
        "failed_ms": 1_767_225_600_000 + number,
        **fields,
    }


def write(directory: Path, *letters: dict[str, Any], agent: str = "refunds", name: str = "letters-1") -> Path:
    folder = Path(letters_folder(str(directory), agent))
    (folder / LETTERS).mkdir(parents=True, exist_ok=True)
    (folder / LETTERS / f"{name}.jsonl").write_bytes(LetterEncoder(False).encode_all(letters))
    return folder


def taken(folder: Path, position: int = 0, *, bounded: bool = True) -> tuple[list[Any], int]:
    chunks = list(RedriveSource(str(folder), bounded=bounded).read(0, position, 10))
    return [value for chunk in chunks for value in chunk.values], chunks[-1].position if chunks else position
