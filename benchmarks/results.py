"""Results as JSON: `results/latest.json`, and the previous run as `results/previous.json`.

Running some of the benchmarks replaces their entries and keeps the others, so each entry has its own date and load.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VERSION = 1
FOLDER = Path(__file__).parent / "results"

Results = dict[str, Any]


def load(path: Path) -> Results | None:
    """None if there is no file, or one of another version."""
    try:
        found: Results = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found if found.get("version") == VERSION else None


def merged(before: Results | None, machine: dict[str, Any], entries: dict[str, Any]) -> Results:
    kept = before["benchmarks"] if before else {}
    return {"version": VERSION, "machine": machine, "benchmarks": {**kept, **entries}}


def save(results: Results, folder: Path = FOLDER) -> None:
    """The file that was the latest becomes the previous one."""
    folder.mkdir(parents=True, exist_ok=True)
    latest, previous = folder / "latest.json", folder / "previous.json"
    if latest.exists():
        previous.write_text(latest.read_text(encoding="utf-8"), encoding="utf-8")
    write(results, latest)


def write(results: Results, path: Path) -> None:
    path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
