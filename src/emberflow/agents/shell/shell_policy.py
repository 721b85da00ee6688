"""Decides what a command line may run, read and write: the allow-list of a chat model, applied to every command.

The result is a plan with absolute paths for `supervisor.py`. The whole line is checked before anything of it runs.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emberflow.agents.shell.command_line import Command, CommandRefused, Redirect, Step
from emberflow.errors import InvalidAgent, did_you_mean, shorten

_BUILTINS = {
    *(
        "cd",
        "pushd",
        "popd",
        "export",
        "unset",
        "source",
        ".",
        "eval",
        "exec",
        "set",
        "alias",
        "trap",
        "ulimit",
    ),
    *("umask", "read", "type", "command", "builtin", "wait", "jobs", "exit", "return", "declare", "local"),
}


class ShellPolicy:
    """`allowed_commands` are names, looked up in the directories of PATH, or absolute paths. Programs below
    `allowed_script_dirs` may be run by their path."""

    def __init__(
        self,
        allowed_commands: Sequence[str],
        allowed_script_dirs: Sequence[str | os.PathLike[str]],
        path: str | None = None,
    ) -> None:
        for item in allowed_commands:
            _check_entry(item)
        self.allowed_commands = list(dict.fromkeys(allowed_commands))
        self.script_dirs = [os.path.realpath(item) for item in allowed_script_dirs]
        self.path = search_path(os.environ.get("PATH", os.defpath) if path is None else path)

    def working_directory(self, cwd: str | None, scratch: str) -> str:
        """Where the commands run: the scratch directory, or a directory below the script directories."""
        if cwd is None:
            return scratch
        found = _resolved(cwd, scratch)
        if not _inside(found, [scratch, *self.script_dirs]) or not os.path.isdir(found):
            raise CommandRefused(
                f"the working directory {shorten(cwd)} is not allowed; allowed are: {self._shown_dirs()}"
            )
        return found

    def plan(self, steps: Sequence[Step], cwd: str, scratch: str) -> list[dict[str, Any]]:
        """Raises CommandRefused for the first thing that is not allowed."""
        return [
            {
                "after": step.after,
                "commands": [self._command(command, cwd, scratch) for command in step.commands],
            }
            for step in steps
        ]

    def _command(self, command: Command, cwd: str, scratch: str) -> dict[str, Any]:
        return {
            "path": self._program(command.words[0], cwd, scratch),
            "argv": list(command.words),
            "redirects": [self._redirect(item, cwd, scratch) for item in command.redirects],
        }

    def _program(self, name: str, cwd: str, scratch: str) -> str:
        if name in self.allowed_commands:
            found = shutil.which(name, path=self.path)
            if found is None:
                raise CommandRefused(f"the command {name!r} is allowed, but it is not installed here")
            return found
        if "/" in name:
            return self._script(name, cwd, scratch)
        if name in _BUILTINS:
            hint = "; use the argument 'cwd'" if name == "cd" else ""
            raise CommandRefused(f"{name!r} is part of a shell, and there is no shell{hint}")
        raise CommandRefused(
            f"the command {shorten(name)} is not allowed{did_you_mean(name, self.allowed_commands)}; {self.shown()}"
        )

    def _script(self, name: str, cwd: str, scratch: str) -> str:
        # Links are resolved first: a link in an allowed directory must not lead out of it.
        found = _resolved(name, cwd)
        if not _inside(found, self.script_dirs) or _inside(found, [scratch]):
            raise CommandRefused(f"the program {shorten(name)} is not allowed; {self.shown()}")
        if not os.path.isfile(found):
            raise CommandRefused(f"there is no program {shorten(name)}")
        if not os.access(found, os.X_OK):
            raise CommandRefused(
                f"the file {shorten(name)} is not executable: run it with its interpreter, if that is allowed"
            )
        return found

    def _redirect(self, item: Redirect, cwd: str, scratch: str) -> dict[str, Any]:
        if item.kind == "dup":
            return {"fd": item.fd, "kind": "dup", "source": int(item.target)}
        if item.target == "/dev/null":
            return {"fd": item.fd, "kind": "null"}
        path = os.path.normpath(os.path.join(cwd, item.target))
        roots = [scratch, *(self.script_dirs if item.kind == "read" else ())]
        root = next((root for root in roots if _inside(path, [root]) and path != root), None)
        if root is None or not item.target:
            where = "scratch directory, which is the working directory if 'cwd' is left out"
            raise CommandRefused(
                f"the redirect to {shorten(item.target)} is not allowed: only files in the {where}"
            )
        parts = os.path.relpath(path, root).split(os.sep)
        return {"fd": item.fd, "kind": item.kind, "root": root, "parts": parts}

    def shown(self) -> str:
        """What is allowed, for the model."""
        return (
            f"allowed commands: {', '.join(self.allowed_commands) or 'none'}; "
            f"programs below: {self._shown_dirs()}"
        )

    def _shown_dirs(self) -> str:
        return ", ".join(self.script_dirs) or "none"


def search_path(path: str) -> str:
    """The directories of PATH in which commands are looked up: absolute ones that only this user and root can change."""
    return os.pathsep.join(
        item for item in dict.fromkeys(path.split(os.pathsep)) if os.path.isabs(item) and _is_safe(item)
    )


def _is_safe(folder: str) -> bool:
    try:
        found = Path(folder).stat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH
    )


def _check_entry(item: object) -> None:
    bad = not isinstance(item, str) or not item or any(character.isspace() for character in item)
    if bad or ("/" in str(item) and not os.path.isabs(str(item))):
        raise InvalidAgent(
            f"allowed_commands contains {shorten(item)}",
            way_out="an entry is the name of a command, such as 'bc', or an absolute path; its arguments are not restricted",
        )


def _resolved(path: str, folder: str) -> str:
    try:
        return os.path.realpath(os.path.join(folder, path))
    except (OSError, ValueError) as error:
        raise CommandRefused(f"the path {shorten(path)} cannot be used") from error


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
