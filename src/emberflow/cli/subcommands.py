"""How a command is added to the command line: one look of `--help`, no abbreviated options."""

from __future__ import annotations

import argparse
from typing import Any


def add_command(
    commands: Any, name: str, what: str, epilog: str, *, description: str = "", usage: str | None = None
) -> argparse.ArgumentParser:
    """`what` says what it does, in a few words; `description` says it again above its own help, if that needs more."""
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
    """A command that has commands of its own, such as `emberflow approvals`; returns what those are added to."""
    group = add_command(commands, name, what, epilog, description=description)
    return group.add_subparsers(title="commands", metavar="COMMAND", required=True)


def directory_command(commands: Any, name: str, what: str, epilog: str) -> argparse.ArgumentParser:
    """One that looks into a job's checkpoint directory."""
    made = add_command(commands, name, what, epilog)
    made.add_argument("directory", metavar="DIR", help="the checkpoint directory of the job")
    return made
