"""One skill: a folder with a `SKILL.md`, whose front matter says what the skill is for."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from emberflow.errors import InvalidAgent, ResourceFailed, describe_cause, shorten

SKILL_FILE = "SKILL.md"
MAX_TEXT_BYTES = 1024 * 1024
"""The size of a file that a model can load."""
_MAX_FRONT_MATTER = 16_384
_MAX_FILES = 1_000
_FRONT_MATTER = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?(?:\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What `SKILL.md` says, and where it is."""

    name: str
    description: str
    content: str
    """The instructions, without the front matter."""
    folder: Path
    origin: str = ""
    license: str | None = None
    compatibility: str | None = None
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def files(self) -> list[str]:
        """The paths of its other files, relative to its folder."""
        found: list[str] = []
        for place, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place, name).relative_to(self.folder).as_posix()
                if path != SKILL_FILE:
                    found.append(path)
            if len(found) >= _MAX_FILES:
                break
        return found[:_MAX_FILES]

    def read(self, path: str) -> str | None:
        """A file's text, or `base64: …` if it is not text; None if the skill has no such file, or it is too large."""
        try:
            found = Path(os.path.realpath(self.folder / path))
            # Links must not lead out of the skill.
            if not found.is_relative_to(os.path.realpath(self.folder)) or not found.is_file():
                return None
            if found.stat().st_size > MAX_TEXT_BYTES:
                return None
            data = found.read_bytes()
        except (OSError, ValueError):
            return None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return f"base64: {base64.b64encode(data).decode('ascii')}"


def read_skill(folder: Path, origin: str) -> Skill:
    """Raises ResourceFailed, naming the file and what is wrong with it."""
    file = folder / SKILL_FILE
    try:
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise _wrong(file, f"it is larger than {MAX_TEXT_BYTES:,} bytes")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(file, describe_cause(error)) from error
    fields, content = _parsed(file, text)
    name = _text(file, fields, "name", 64, required=True)
    if not _NAME.fullmatch(name):
        raise _wrong(
            file, f"the name {shorten(name)} may contain only lowercase letters, digits and single hyphens"
        )
    if not content.strip():
        raise _wrong(file, "there are no instructions after the front matter")
    return Skill(
        name=name,
        description=_text(file, fields, "description", 1024, required=True),
        content=content,
        folder=folder,
        origin=origin,
        license=_text(file, fields, "license", 1024) or None,
        compatibility=_text(file, fields, "compatibility", 500) or None,
        metadata=_metadata(file, fields.get("metadata")),
    )


def _parsed(file: Path, text: str) -> tuple[dict[str, Any], str]:
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise _wrong(file, "it does not start with front matter between two '---' lines")
    if len(found[1]) > _MAX_FRONT_MATTER:
        raise _wrong(file, f"its front matter is longer than {_MAX_FRONT_MATTER:,} characters")
    from emberflow.agents.yaml.nodes import read_text

    try:
        # One line is before it: the lines in messages are those of the file.
        fields = read_text(f"\n{found[1]}", SKILL_FILE).plain()
    except InvalidAgent as error:
        raise _wrong(
            file, f"its front matter cannot be read: {error.message}; {error.cause}".rstrip("; ")
        ) from error
    if not isinstance(fields, dict):
        raise _wrong(file, "its front matter must be a mapping of fields")
    return cast("dict[str, Any]", fields), found[2]


def _text(file: Path, fields: dict[str, Any], name: str, limit: int, *, required: bool = False) -> str:
    value: Any = fields.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise _wrong(file, f"its front matter must have a string field {name!r}")
    if len(value.strip()) > limit:
        raise _wrong(file, f"its {name} is longer than {limit:,} characters")
    return value.strip()


def _metadata(file: Path, given: Any) -> dict[str, str]:
    values = cast("dict[Any, Any]", given) if isinstance(given, dict) else {}
    return {
        str(name): str(value)
        for name, value in values.items()
        if isinstance(name, str) and isinstance(value, str | int | float | bool)
    }


def _wrong(file: Path, why: str) -> ResourceFailed:
    return ResourceFailed(f"the skill {str(file.parent)!r} cannot be used", cause=f"{SKILL_FILE}: {why}")
