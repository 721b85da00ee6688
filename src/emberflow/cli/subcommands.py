"""Adds commands to the command line: a uniform `--help`, no abbreviated options."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(
    commands: Any, name: str, what: str, epilog: str, *, description: str = "", usage: str | None = None
) -> argparse.ArgumentParser:
    """Adds a command. `what` is its short help; `description` replaces it at the top of the command's own help."""
    return commands.add_parser(
        name,
        help=what,
        description=description or f"{what[0].upper()}{what[1:]}.",
        usage=usage,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_command_group(commands: Any, name: str, what: str, epilog: str, *, description: str) -> Any:
    """Adds a command with subcommands, such as `emberflow approvals`; returns the object to add them to."""
    group = add_command(commands, name, what, epilog, description=description)
    return group.add_subparsers(title="commands", metavar="COMMAND", required=True)


def directory_command(commands: Any, name: str, what: str, epilog: str) -> argparse.ArgumentParser:
    """Adds a subcommand that takes a job's checkpoint directory."""
    made = add_command(commands, name, what, epilog)
    made.add_argument("directory", metavar="DIR", help="the checkpoint directory of the job")
    return made
