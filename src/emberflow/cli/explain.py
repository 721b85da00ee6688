"""`emberflow explain`: shows the plan of a program without running the job."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command
from emberflow.cli.user_program import add_written_for, is_yaml, run_program
from emberflow.cli.yaml_agents import explain_yaml, refuse_yaml_options

EPILOG = f"""\
examples:
  emberflow explain pipeline.py
  emberflow explain pipeline.py --format mermaid > pipeline.mmd
  emberflow explain pipeline.py --format json -- --input orders.csv
  emberflow explain agents.yaml --agent helper

The program runs up to its first execute(); nothing is read from a source and nothing is written.

{EXIT_CODES_HELP}"""


def add_parser(subparsers: Any) -> None:
    """Adds `explain` to the command line."""
    parser = add_command(
        subparsers,
        "explain",
        "show what a program compiles to",
        EPILOG,
        description="Compiles a program, or the agents of a YAML file, and prints the plan instead of running the job.",
        usage="emberflow explain PROGRAM [options] [-- ARGUMENTS OF THE PROGRAM]",
    )
    parser.add_argument("program", metavar="PROGRAM", help="the Python file, or the YAML file with agents")
    parser.add_argument("--format", choices=("text", "mermaid", "json"), default="text", help="default: text")
    parser.add_argument("--engine", choices=("local", "spark"), help="compile for this engine")
    parser.add_argument("--agent", metavar="NAME", help="only this agent of a YAML file")
    add_written_for(parser)
    parser.add_argument("--traceback", action="store_true", help="show Python's traceback with an error")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the plan; a program that never calls execute() is an error."""
    from emberflow.plan.explain_mode import Explained

    if is_yaml(args.program):
        return explain_yaml(args)
    refuse_yaml_options(args)
    variables = {"EMBERFLOW_EXPLAIN": str(args.format)}
    if args.engine is not None:
        variables["EMBERFLOW_ENGINE"] = args.engine
    try:
        code = run_program(
            args.program,
            args.program_args,
            variables=variables,
            show_traceback=args.traceback,
            written_for=args.written_for,
        )
    except Explained as explained:
        print(explained.text)
        return ExitCode.OK
    if code == ExitCode.OK:
        print(f"{args.program} ended without calling execute(): there is no job to explain", file=sys.stderr)
        return ExitCode.BAD_PROGRAM
    return code
