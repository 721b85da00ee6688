"""Skills on disk and in archives."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

SCRIPT = '#!/bin/sh\necho "$1, and why not?"\n'


def skill_text(name: str, description: str = "Does something.", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def write_skill(folder: Path, name: str, description: str = "Does something.", body: str = "Do it.") -> Path:
    """A skill with a script and a reference."""
    made = folder / name
    (made / "scripts").mkdir(parents=True)
    (made / "SKILL.md").write_text(skill_text(name, description, body))
    (made / "scripts" / "ask.sh").write_text(SCRIPT)
    (made / "scripts" / "ask.sh").chmod(0o755)
    (made / "reference.md").write_text("# Reference")
    return made


def zipped(folder: Path) -> bytes:
    """The content of a folder as a zip file, with the modes of its files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    return made.getvalue()
