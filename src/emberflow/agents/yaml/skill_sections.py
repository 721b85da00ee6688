"""The section `skills` of a YAML file."""

from __future__ import annotations

import os
from pathlib import Path

from emberflow.agents.agent_skills.skills import Skills, SkillSourceSpec
from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.errors import InvalidAgent


def skills_of(entry: Node, owner: str) -> Skills:
    """The sources of an entry. A relative path is looked up beside the file first, then in the working directory."""
    java = entry.get("classpath")
    if java is not None and java.value:
        raise wrong(
            java.place,
            f"{owner}: skills on a Java class path are not supported",
            way_out="use paths, urls or package",
        )
    sources = [
        *(SkillSourceSpec("local", {"path": _path(item)}) for item in entry.items("paths")),
        *(source for item in entry.items("urls") for source in _url(item, owner)),
        *(
            SkillSourceSpec("package", {"package": item.text("package"), "resource": item.text("resource")})
            for item in entry.items("package")
        ),
    ]
    if not sources:
        raise wrong(
            entry.place, f"{owner} declares no source of skills", way_out="use paths, urls or package"
        )
    return Skills(sources)


def _url(item: Node, owner: str) -> list[SkillSourceSpec]:
    try:
        return Skills.from_url(item.value).sources
    except InvalidAgent as error:
        raise wrong(item.place, f"{owner}: {error.message}", way_out=error.way_out) from None


def _path(item: Node) -> str:
    written: str = item.value
    beside = Path(item.place.file).resolve().parent / written
    return os.fspath(beside) if not os.path.isabs(written) and beside.exists() else written
