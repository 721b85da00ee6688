"""`emberflow demo`: runs `emberflow.demo`, which is imported only then."""

from __future__ import annotations

import argparse
from typing import Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP
from emberflow.cli.subcommands import add_command

EPILOG = f"""\
examples:
  emberflow demo                   on Spark if pyspark is installed, otherwise in this process
  emberflow demo --engine local    in this process, without Java
  emberflow demo -- --help         all options of the demo

{EXIT_CODES_HELP}"""


def add_parser(subparsers: Any) -> None:
    """Adds `demo` to the command line."""
    parser = add_command(
        subparsers,
        "demo",
        "run a demonstration on this machine",
        EPILOG,
        description="Runs a small program and shows what happens, step by step.",
        usage="emberflow demo [OPTIONS OF THE DEMO]",
    )
    parser.set_defaults(run=run, passes_arguments_on=True)


def run(args: argparse.Namespace) -> int:
    """Runs the demo with the arguments that follow."""
    from emberflow.demo import main

    code: int | None = main(args.program_args)
    return code or 0
