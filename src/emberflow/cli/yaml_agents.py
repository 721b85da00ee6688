"""Runs and explains YAML files with agents, for `emberflow run` and `emberflow explain`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from emberflow.cli.exit_codes import ExitCode
from emberflow.cli.user_program import as_python_would, checked_program, is_yaml, resolving
from emberflow.errors import InvalidArgument

if TYPE_CHECKING:
    from emberflow.agents import AgentsExecutionEnvironment

_ONLY_YAML = ("input", "output", "agent", "key", "set")


def add_yaml_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `run` that apply to YAML files only."""
    group = parser.add_argument_group("options for agents in YAML (PROGRAM is a .yaml or .yml file)")
    group.add_argument(
        "--input",
        metavar="FILE",
        help="the inputs: a file with one JSON value per line; - is the standard input",
    )
    group.add_argument(
        "--output",
        metavar="FILE",
        help='where outputs are written, as lines {"key": …, "output": …} (default: the standard output)',
    )
    group.add_argument("--agent", metavar="NAME", help="which agent, if the file declares several")
    group.add_argument(
        "--key",
        metavar="FIELD",
        help="inputs with the same value of this field share memory and keep their order (default: each line is "
        "its own key, identified by its line number)",
    )
    group.add_argument(
        "--set",
        metavar="OPTION=VALUE",
        action="append",
        default=[],
        help="an option of agents, such as max-steps=20, or a setting of your own; may be repeated",
    )


def refuse_yaml_options(args: argparse.Namespace) -> None:
    """Raises InvalidArgument if such an option is given for a Python program."""
    given = [name for name in _ONLY_YAML if getattr(args, name, None)]
    if given:
        raise InvalidArgument(
            f"--{given[0]} applies to agents in YAML, and {args.program} is a Python program",
            way_out="give the program its own arguments after --",
        )


def run_yaml(args: argparse.Namespace, variables: Mapping[str, str]) -> int:
    """Runs an agent of a YAML file."""
    from emberflow.agents.yaml.run_file import FileRun, run_agents_file

    path = checked_program(args.program)
    if args.written_for == "pyflink" or args.program_args:
        extra = "arguments after -- are" if args.program_args else "--as pyflink is"
        raise InvalidArgument(f"{extra} for Python programs, and {args.program} is a YAML file")
    if args.input is None:
        raise InvalidArgument(
            f"{args.program} needs inputs",
            way_out="--input FILE, a file with one JSON value per line, or --input -",
        )
    wanted = FileRun(
        file=args.program,
        inputs=args.input,
        output=args.output,
        agent=args.agent,
        key=args.key,
        options=dict(map(_option, args.set)),
    )
    with as_python_would(path, args.program, (), variables), resolving(args.written_for, path):
        written = run_agents_file(wanted, _environment(args.written_for))
    if not args.quiet and args.output is not None:
        print(f"{written} output{'' if written == 1 else 's'} written to {args.output}", file=sys.stderr)
    return ExitCode.OK


def explain_yaml(args: argparse.Namespace) -> int:
    """Prints the plans of a YAML file's agents."""
    from emberflow.agents.yaml.run_file import explain_agents_file

    path = checked_program(args.program)
    with as_python_would(path, args.program, (), {}), resolving(args.written_for, path):
        print(explain_agents_file(args.program, args.format, args.agent))
    return ExitCode.OK


def _environment(written_for: str | None) -> type[AgentsExecutionEnvironment]:
    if written_for == "flink-agents":
        from emberflow.compat.flink_agents.execution_environment import AgentsExecutionEnvironment
    else:
        from emberflow.agents import AgentsExecutionEnvironment
    return AgentsExecutionEnvironment


def _option(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise InvalidArgument(f"--set {text} has no value", way_out="--set max-steps=20")
    return name.strip(), value.strip()


__all__ = ["add_yaml_options", "explain_yaml", "is_yaml", "refuse_yaml_options", "run_yaml"]
