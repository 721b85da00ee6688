"""`emberflow demo`: runs `emberflow.demo`, which is imported only then."""

from __future__ import annotations

import argparse
from typing import Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP


def add_parser(subparsers: Any) -> None:
    """Adds `demo` to the command line."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo",
        help="run a demonstration on this machine",
        description="Runs a small program and shows what happens, step by step.",
        usage="emberflow demo [-- OPTIONS OF THE DEMO]",
        epilog=f"examples:\n  emberflow demo\n  emberflow demo -- --help\n\n{EXIT_CODES_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the demo with the arguments after `--`."""
    from emberflow.demo import main

    code: int | None = main(args.program_args)
    return code or 0
