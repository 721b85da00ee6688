"""The skills of an agent, from all its `Skills` resources; loaded once per process, when a chat model first needs them."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from emberflow.agents.agent_skills.skill import SKILL_FILE, Skill, read_skill
from emberflow.agents.agent_skills.skill_sources import bring
from emberflow.agents.agent_skills.skills import Skills, SkillSourceSpec
from emberflow.errors import ResourceFailed, did_you_mean
from emberflow.plan.agents.resources import ResourceContext, ResourceType

_log = logging.getLogger("emberflow.agents")


class SkillLibrary:
    """Everything here blocks while the skills are loaded: call it on a thread."""

    def __init__(self, resources: Sequence[Skills]) -> None:
        self._sources: list[SkillSourceSpec] = []
        for source in (source for item in resources for source in item.sources):
            if source not in self._sources:
                self._sources.append(source)
        self._lock = threading.Lock()
        self._owned = ExitStack()
        self._skills: dict[str, Skill] | None = None
        self._broken: dict[str, str] = {}

    def names(self) -> list[str]:
        """All skills that can be used."""
        return list(self._loaded())

    def get(self, name: str) -> Skill:
        """Raises ResourceFailed if there is no such skill, or it cannot be used."""
        known = self._loaded()
        if name in known:
            return known[name]
        if name in self._broken:
            raise ResourceFailed(f"the skill {name!r} cannot be used", cause=self._broken[name])
        raise ResourceFailed(
            f"there is no skill {name!r}{did_you_mean(name, known)}",
            cause=f"the agent's skills: {', '.join(known) or 'none'}",
            way_out="declare where it is: @skills, Skills.from_local_dir(…)",
        )

    def close(self) -> None:
        """Removes what was unpacked or downloaded."""
        with self._lock:
            self._skills = None
            atexit.unregister(self.close)
            self._owned.close()

    def _loaded(self) -> dict[str, Skill]:
        with self._lock:
            if self._skills is None:
                self._skills = self._load()
            return self._skills

    def _load(self) -> dict[str, Skill]:
        found: dict[str, Skill] = {}
        self._broken = {}
        with ExitStack() as owned:
            for source in self._sources:
                for folder in _folders(bring(source, owned)):
                    self._read(folder, str(source), found)
            # If a later source fails, what was made for the earlier ones is removed.
            self._owned = owned.pop_all()
        atexit.register(self.close)
        return found

    def _read(self, folder: Path, origin: str, found: dict[str, Skill]) -> None:
        try:
            skill = read_skill(folder, origin)
        except ResourceFailed as error:
            # It must not affect chat models that do not use it.
            _log.warning("the skill %s of %s cannot be used: %s", folder.name, origin, error.cause)
            self._broken[folder.name] = error.cause
            return
        if skill.name in found:
            _log.warning(
                "the skill %r of %s replaces that of %s", skill.name, origin, found[skill.name].origin
            )
        found[skill.name] = skill


def _folders(root: Path) -> list[Path]:
    return sorted(item for item in root.iterdir() if (item / SKILL_FILE).is_file())


class _Agent(ResourceContext, Protocol):
    """The resources of an agent."""

    def names(self, type: ResourceType) -> list[str]: ...


def library_of(context: _Agent | None) -> SkillLibrary:
    """The library of an agent; it belongs to the first of its `Skills`, which closes it."""
    if context is None:
        raise ResourceFailed(
            "the chat model has skills, but it is not part of an agent",
            way_out="declare the chat model and the skills in an agent",
        )
    names = context.names(ResourceType.SKILLS)
    found: list[Skills] = [context.get_resource(name, ResourceType.SKILLS) for name in names]
    if not found:
        raise ResourceFailed(
            "the chat model has skills, but the agent declares no source of skills",
            way_out="@skills, or add_resource('skills', ResourceType.SKILLS, Skills.from_local_dir(…))",
        )
    with _libraries_lock:
        if found[0].library is None:
            found[0].library = SkillLibrary(found)
        return found[0].library


_libraries_lock = threading.Lock()
