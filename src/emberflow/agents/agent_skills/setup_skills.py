"""What a chat model gets for its `skills`, `allowed_commands` and `allowed_script_dirs`: two tools and a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from emberflow.agents.agent_skills.load_skill_tool import LoadSkillTool
from emberflow.agents.agent_skills.skill import Skill
from emberflow.agents.agent_skills.skill_library import library_of
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.system_messages import with_system_message
from emberflow.agents.tools.calling import call_function
from emberflow.agents.tools.function_tool import Tool

_PLACE = "{skills}"
DISCOVERY_PROMPT = f"""## Skills

You have skills: instructions for special tasks. When one of them fits the task, load it with the tool `load_skill` before you
do anything else, and follow its instructions. A skill may have further files: `load_skill` with a `path` reads them.

<available_skills>
{_PLACE}
</available_skills>"""


class SetupSkills:
    """The skills of one chat model. Nothing is loaded before its first call."""

    def __init__(
        self,
        names: Sequence[str],
        context: Any,
        *,
        discovery_prompt: str | None,
        allowed_commands: Sequence[str],
        allowed_script_dirs: Sequence[str],
    ) -> None:
        self._names = list(dict.fromkeys(names))
        self._template = DISCOVERY_PROMPT if discovery_prompt is None else discovery_prompt
        self._prompt: str | None = None
        self.tools: list[Tool] = []
        """`load_skill`; `bash` only if something is allowed."""
        self._library = library_of(context) if self._names else None
        if self._library is not None:
            self.tools.append(LoadSkillTool(self._library, self._names))
        if allowed_commands or allowed_script_dirs:
            from emberflow.agents.shell.bash_tool import BashTool

            self.tools.append(
                BashTool(
                    allowed_commands,
                    allowed_script_dirs,
                    more_script_dirs=self._folders if self._names else None,
                )
            )

    async def added_to(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The messages with the list of skills as an instruction. Raises ResourceFailed if the skills cannot be
        loaded."""
        if not self._names:
            return list(messages)
        if self._prompt is None:
            listed = await call_function(self._listed)
            self._prompt = self._template.replace(_PLACE, listed)
        return with_system_message(messages, self._prompt)

    def _listed(self) -> str:
        return "\n".join(
            f"<skill>\n<name>{skill.name}</name>\n<description>{escape(skill.description)}</description>\n</skill>"
            for skill in self._skills()
        )

    def _folders(self) -> list[str]:
        return [str(skill.folder) for skill in self._skills()]

    def _skills(self) -> list[Skill]:
        return [] if self._library is None else [self._library.get(name) for name in self._names]
