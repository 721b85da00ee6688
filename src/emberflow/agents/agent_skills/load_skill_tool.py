"""`LoadSkillTool`: the tool `load_skill`, by which a model reads a skill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from emberflow.agents.agent_skills.skill import SKILL_FILE, Skill
from emberflow.agents.agent_skills.skill_library import SkillLibrary
from emberflow.agents.tools.function_tool import FunctionTool, Tool, ToolType

LOAD_SKILL_TOOL = "load_skill"


class LoadSkillTool(Tool):
    """Reads the instructions of a skill, or another of its files. The model can read the skills in `names`, no others."""

    def __init__(self, library: SkillLibrary, names: Sequence[str]) -> None:
        self._library = library
        self._names = list(names)
        self._function = FunctionTool(self._load, name=LOAD_SKILL_TOOL)
        self.metadata = self._function.metadata

    @classmethod
    def tool_type(cls) -> ToolType:
        """Always `ToolType.FUNCTION`."""
        return ToolType.FUNCTION

    async def call(self, arguments: dict[str, Any] | None = None, /, **given: Any) -> Any:
        """`await tool.call(name="math")`. Returns text for the model, also if there is no such skill or file."""
        return await self._function.call(arguments, **given)

    def _load(self, name: str, path: str = SKILL_FILE) -> str:
        """Loads the instructions of a skill, or one of its files.

        Args:
            name: The name of the skill.
            path: A file of the skill, relative to its folder.
        """
        if name not in self._names:
            return f"There is no skill {name!r}. Your skills: {', '.join(self._names) or 'none'}"
        skill = self._library.get(name)
        if path in ("", SKILL_FILE):
            return _shown(skill)
        found = skill.read(path)
        if found is None:
            return f"The skill {name!r} has no file {path!r} that can be loaded. Its files: {', '.join(skill.files()) or 'none'}"
        return found


def _shown(skill: Skill) -> str:
    files = [f"<file>{escape(str(skill.folder / path))}</file>" for path in skill.files()]
    lines = [
        f"<skill_content name={quoteattr(skill.name)}>",
        skill.content.strip(),
        "",
        f"The folder of this skill is {skill.folder}; relative paths are relative to it.",
        *(["<skill_files>", *files, "</skill_files>"] if files else []),
        "</skill_content>",
    ]
    return "\n".join(lines)
