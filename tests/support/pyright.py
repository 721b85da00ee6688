"""Runs the type checker on some files and returns what it finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error of the checker, in a line counted from 1."""

    path: Path
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line} {self.rule}: {self.message}"


def check(paths: Sequence[Path], mode: str = "standard") -> dict[Path, list[Finding]]:
    """The errors in files below the paths, by file; the package is the one in `src`."""
    settings = {
        "include": [str(path) for path in paths],
        "extraPaths": [str(ROOT), str(ROOT / "src")],
        "stubPath": str(ROOT / "typings"),
        "pythonVersion": "3.11",
        "typeCheckingMode": mode,
        "reportMissingModuleSource": "none",
    }
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "pyrightconfig.json")
        project.write_text(json.dumps(settings), encoding="utf-8")
        command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
        done = subprocess.run(
            [*command, "--project", str(project)],
            capture_output=True,
            text=True,
            env={**os.environ, "NODE_OPTIONS": "--max-old-space-size=2048"},
        )
    assert done.returncode in (0, 1), done.stderr or done.stdout
    answer = json.loads(done.stdout)
    # Checking nothing would find nothing.
    assert answer["summary"]["filesAnalyzed"] > 0, done.stdout
    found: dict[Path, list[Finding]] = {}
    for item in answer["generalDiagnostics"]:
        if item["severity"] != "error":
            continue
        path = Path(item["file"])
        line = item["range"]["start"]["line"] + 1
        found.setdefault(path, []).append(Finding(path, line, item.get("rule", ""), item["message"]))
    return found
