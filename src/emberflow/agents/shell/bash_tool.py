"""`BashTool`: the tool `bash`, by which a model runs allowed commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from emberflow.agents.shell.command_line import CommandRefused, parse
from emberflow.agents.shell.scratch import scratch_directories
from emberflow.agents.shell.shell_policy import ShellPolicy
from emberflow.agents.shell.shell_run import ShellLimits, ShellOutcome, run_commands
from emberflow.agents.tools.calling import call_function
from emberflow.agents.tools.function_tool import FunctionTool, Tool, ToolType
from emberflow.errors import InvalidAgent

BASH_TOOL = "bash"
_ABOUT = (
    "Runs a command line. Commands may be combined with |, &&, || and ;, and redirected to files of the working "
    "directory, which is empty at first and is removed after the call. There are no variables, substitutions, patterns, "
    "loops or here-documents."
)


class BashTool(Tool):
    """Runs commands of an allow-list, without a shell: what the model may call is decided here, never by the model.

    `allowed_commands` are names or absolute paths; their arguments are not restricted. `allowed_script_dirs` are
    directories whose executable files may be run. `timeout_s` of the limits is the longest that a call may ask for.
    Returns text for the model, also if a command was rejected or failed.
    """

    def __init__(
        self,
        allowed_commands: Sequence[str] = (),
        allowed_script_dirs: Sequence[str | PathLike[str]] = (),
        *,
        limits: ShellLimits | None = None,
        path: str | None = None,
        more_script_dirs: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`more_script_dirs` returns further directories; it may block, and is called when the tool is first used. `path` is
        where commands are looked up, by default PATH."""
        for name, given in (
            ("allowed_commands", allowed_commands),
            ("allowed_script_dirs", allowed_script_dirs),
        ):
            if isinstance(given, str):
                raise InvalidAgent(
                    f"{name} must be a list, got the string {given!r}", way_out=f"{name}=[{given!r}]"
                )
        self._limits = limits or ShellLimits(timeout_s=600.0)
        self._given = (list(allowed_commands), list(allowed_script_dirs), path)
        self._more_script_dirs = more_script_dirs
        self._policy = ShellPolicy(*self._given)
        shown = self._policy.shown().capitalize() + (
            "" if more_script_dirs is None else ", and the folders of your skills"
        )
        self._function = FunctionTool(self._run, name=BASH_TOOL, description=f"{_ABOUT} {shown}.")
        self.metadata = self._function.metadata

    @classmethod
    def tool_type(cls) -> ToolType:
        """Always `ToolType.FUNCTION`."""
        return ToolType.FUNCTION

    async def call(self, arguments: dict[str, Any] | None = None, /, **given: Any) -> Any:
        """`await tool.call(command="echo 1 | bc")`. Raises InvalidArgument for arguments that do not fit, and ToolFailed if
        commands cannot be run at all."""
        return await self._function.call(arguments, **given)

    async def _whole_policy(self) -> ShellPolicy:
        if self._more_script_dirs is not None:
            commands, folders, path = self._given
            more = await call_function(self._more_script_dirs)
            self._policy = ShellPolicy(commands, [*folders, *more], path)
            self._more_script_dirs = None
        return self._policy

    async def _run(
        self,
        command: str,
        timeout: float = 60.0,  # noqa: ASYNC109
        cwd: str | None = None,
    ) -> str:
        """Runs a command line.

        Args:
            command: The command line.
            timeout: Seconds after which it is stopped.
            cwd: The directory to run it in, which must be below an allowed directory of programs.
        """
        if not timeout > 0 or math.isinf(timeout):
            return "Command rejected: the timeout must be a positive number of seconds"
        limits = replace(self._limits, timeout_s=min(timeout, self._limits.timeout_s))
        try:
            steps = parse(command)
            policy = await self._whole_policy()
            async with scratch_directories() as scratch:
                folder = policy.working_directory(cwd, scratch.work)
                plan = policy.plan(steps, folder, scratch.work)
                outcome = await run_commands(
                    plan, cwd=folder, scratch=scratch, path=policy.path, limits=limits
                )
        except CommandRefused as error:
            return f"Command rejected: {error}"
        return _told(outcome, limits)


def _told(outcome: ShellOutcome, limits: ShellLimits) -> str:
    """The outcome as text for the model."""
    said = outcome.stdout.strip()
    if outcome.status == 0:
        return said or "Success"
    reasons = {
        "timeout": f"timed out after {limits.timeout_s:g} seconds",
        "output": f"was stopped: it wrote more than {limits.max_output_bytes:,} bytes",
        "processes": f"was stopped: it had more than {limits.max_processes} processes",
    }
    if outcome.stopped:
        head = f"Error: the command {reasons.get(outcome.stopped, 'was stopped')}"
    else:
        head = f"Error (exit code {outcome.status})"
    wrong = outcome.stderr.strip()
    return "\n".join(part for part in (f"{head}: {wrong}" if wrong else head, said) if part)
