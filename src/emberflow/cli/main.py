"""Entry point of the `emberflow` command: selects the subcommand and turns errors into exit codes.

Imports nothing heavy, so that `emberflow --help` is fast; a command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from emberflow.cli import (
    approvals,
    checkpoints,
    dead_letters,
    demo,
    doctor,
    events,
    explain,
    run,
    savepoint,
)
from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode, exit_code_of
from emberflow.cli.subcommands import CommandParser
from emberflow.errors import EmberflowError

COMMANDS = (run, explain, events, approvals, dead_letters, checkpoints, savepoint, doctor, demo)

EXAMPLES = """\
examples:
  emberflow demo                              run a demonstration
  emberflow run pipeline.py --engine local    run a program in this process, without Java
  emberflow explain pipeline.py               show what the program compiles to
  emberflow events show logs/                 show what an agent did
  emberflow approvals list state/             list open questions of agents
  emberflow dead-letters list state/          list inputs that agents could not process
  emberflow savepoint inspect PATH            show what a savepoint contains
  emberflow doctor                            check this machine
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; wrong usage raises SystemExit(2), as in argparse."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    own, for_program = _split_at_double_dash(arguments)
    parser = _build_parser()
    args, unknown = parser.parse_known_args(own)
    args.program_args = for_program
    if unknown and getattr(args, "passes_arguments_on", False):
        args.program_args = [*unknown, *for_program]
    elif unknown:
        _refuse(args, unknown)
    command: Callable[[argparse.Namespace], int] = args.run
    try:
        return int(command(args))
    except EmberflowError as error:
        print(error, file=sys.stderr)
        return exit_code_of(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED


def _build_parser() -> CommandParser:
    parser = CommandParser(
        prog="emberflow",
        description="Streams and agents in Python, on Spark or in one process.",
        epilog=f"{EXAMPLES}\n{EXIT_CODES_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"emberflow {installed_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def installed_version() -> str:
    """The version of the installed package; `unknown` when it runs from an uninstalled source tree."""
    try:
        return importlib.metadata.version("emberflow")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _split_at_double_dash(arguments: list[str]) -> tuple[list[str], list[str]]:
    # Split by hand: argparse removes only some of the `--` separators, depending on the Python version.
    if "--" not in arguments:
        return arguments, []
    cut = arguments.index("--")
    return arguments[:cut], arguments[cut + 1 :]


def _refuse(args: argparse.Namespace, unknown: list[str]) -> NoReturn:
    command: CommandParser = args.command
    command.refuse(unknown, "; arguments for the program itself go after --" if "program" in args else "")


if __name__ == "__main__":
    sys.exit(main())
