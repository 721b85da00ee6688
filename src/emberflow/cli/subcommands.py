"""Adds commands to the command line: a uniform `--help`, no abbreviated options, suggestions for misspelled names."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from emberflow.errors import did_you_mean

_INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)


class CommandParser(argparse.ArgumentParser):
    """Errors suggest the closest command, option or choice. Parsers of subcommands are of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the message, and exits with 2."""
        found = _INVALID_CHOICE.search(message)
        if found is not None:
            message += did_you_mean(found[1], re.findall(r"[\w-]+", found[2]))
        super().error(message)

    def refuse(self, unknown: list[str], hint: str) -> NoReturn:
        """For arguments that the command does not have; also suggests the option that is closest to the first."""
        options = re.findall(r"--\w[\w-]*", self.format_help().partition("examples:")[0])
        near = did_you_mean(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}{near}")


def add_command(
    commands: Any, name: str, what: str, epilog: str, *, description: str = "", usage: str | None = None
) -> CommandParser:
    """Adds a command. `what` is its short help; `description` replaces it at the top of the command's own help."""
    made: CommandParser = commands.add_parser(
        name,
        help=what,
        description=description or f"{what[0].upper()}{what[1:]}.",
        usage=usage,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    # The innermost command sets it last.
    made.set_defaults(command=made)
    return made


def add_command_group(commands: Any, name: str, what: str, epilog: str, *, description: str) -> Any:
    """Adds a command with subcommands, such as `emberflow approvals`; returns the object to add them to."""
    group = add_command(commands, name, what, epilog, description=description)
    return group.add_subparsers(title="commands", metavar="COMMAND", required=True)


def directory_command(commands: Any, name: str, what: str, epilog: str) -> CommandParser:
    """Adds a subcommand that takes a job's checkpoint directory."""
    made = add_command(commands, name, what, epilog)
    made.add_argument("directory", metavar="DIR", help="the checkpoint directory of the job")
    return made
