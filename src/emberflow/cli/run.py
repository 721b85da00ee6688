"""`emberflow run`: runs a program with an engine, parallelism and checkpoint directory from the command line."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command
from emberflow.cli.user_program import add_written_for, is_yaml, run_program
from emberflow.cli.yaml_agents import add_yaml_options, refuse_yaml_options, run_yaml
from emberflow.plan.job_contract import MADE

EPILOG = f"""\
examples:
  emberflow run pipeline.py
  emberflow run pipeline.py --engine local --parallelism 4
  emberflow run pipeline.py --engine spark --master "local[2]" --checkpoint-dir state/pipeline
  emberflow run pipeline.py --from-savepoint savepoints/monday --checkpoint-dir state/new
  emberflow run --as pyflink job.py --engine local
  emberflow run pipeline.py --quiet -- --input orders.csv
  emberflow run agents.yaml --input questions.jsonl --agent helper
  emberflow run agents.yaml --input orders.jsonl --key customer --output answers.jsonl

--parallelism, --checkpoint-dir and --from-savepoint override what the program sets; --engine and --master apply only where
the program does not choose itself.

{EXIT_CODES_HELP}"""

NOTHING_EXECUTED = """\
{program} ended without executing a job
  what to do: call env.execute() at the end of the program; if it does so only `if __name__ == "__main__"`, or on some \
condition, check that this line is reached"""


def add_parser(subparsers: Any) -> None:
    """Adds `run` to the command line."""
    parser = add_command(
        subparsers,
        "run",
        "run a program",
        EPILOG,
        description="Runs a Python program that builds a stream or an agent and executes it, or an agent described in YAML.",
        usage="emberflow run PROGRAM [options] [-- ARGUMENTS OF THE PROGRAM]",
    )
    parser.add_argument("program", metavar="PROGRAM", help="the Python file, or the YAML file with agents")
    parser.add_argument(
        "--engine",
        choices=("local", "spark"),
        help="where to run it (default: spark if pyspark is installed)",
    )
    parser.add_argument(
        "--master", help='Spark master, e.g. "local[2]", spark://host:7077 or sc://host:15002'
    )
    parser.add_argument("--parallelism", type=_positive, metavar="N", help="parallel instances of each step")
    parser.add_argument(
        "--checkpoint-dir",
        metavar="DIR",
        help="where state is stored; a second run continues where the first stopped",
    )
    parser.add_argument(
        "--from-savepoint",
        metavar="PATH",
        help="start from this savepoint, unless the checkpoint directory has a checkpoint",
    )
    parser.add_argument(
        "--allow-non-restored-state",
        action="store_true",
        help="drop the savepoint's state of steps that the program no longer has",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="replace a job that owns the checkpoint directory and cannot be stopped",
    )
    parser.add_argument(
        "--accept-sinks",
        action="store_true",
        help="continue although a sink has lost output or is another folder: write only new output",
    )
    add_written_for(parser)
    parser.add_argument("--quiet", action="store_true", help="print only what the program prints")
    parser.add_argument("--traceback", action="store_true", help="show Python's traceback with an error")
    add_yaml_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the program and returns its exit code."""
    if is_yaml(args.program):
        return run_yaml(args, environment_of(args))
    refuse_yaml_options(args)
    before = MADE.copy()
    code = run_program(
        args.program,
        args.program_args,
        variables=environment_of(args),
        show_traceback=args.traceback,
        written_for=args.written_for,
    )
    made = MADE - before
    if code == ExitCode.OK and made["environments"] and not made["jobs"]:
        print(NOTHING_EXECUTED.format(program=args.program), file=sys.stderr)
        return ExitCode.BAD_PROGRAM
    return code


def environment_of(args: argparse.Namespace) -> dict[str, str]:
    """The EMBERFLOW_* variables for the given options."""
    variables: dict[str, str] = {}
    if args.engine is not None:
        variables["EMBERFLOW_ENGINE"] = args.engine
    if args.master is not None:
        variables["EMBERFLOW_MASTER"] = args.master
    if args.parallelism is not None:
        variables["EMBERFLOW_PARALLELISM"] = str(args.parallelism)
    if args.checkpoint_dir is not None:
        variables["EMBERFLOW_CHECKPOINT_DIR"] = args.checkpoint_dir
    if args.from_savepoint is not None:
        variables["EMBERFLOW_SAVEPOINT"] = args.from_savepoint
    if args.allow_non_restored_state:
        variables["EMBERFLOW_ALLOW_NON_RESTORED_STATE"] = "1"
    if args.take_over:
        variables["EMBERFLOW_TAKE_OVER"] = "1"
    if args.accept_sinks:
        variables["EMBERFLOW_ACCEPT_SINKS"] = "1"
    if args.quiet:
        variables["EMBERFLOW_QUIET"] = "1"
    if args.traceback:
        variables["EMBERFLOW_TRACEBACK"] = "1"
    return variables


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number
