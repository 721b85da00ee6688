"""`emberflow checkpoints`: lists the checkpoints that a job has taken."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.savepoint import size
from emberflow.cli.subcommands import add_command
from emberflow.errors import CheckpointUnusable
from emberflow.rendering.plain_text import clean

EPILOG = f"""\
examples:
  emberflow checkpoints state/orders
  emberflow checkpoints state/orders --last 5 --json

On Spark every micro-batch is a checkpoint. Times are UTC. `emberflow savepoint create` creates a savepoint from the latest one.

{EXIT_CODES_HELP}"""


def add_parser(subparsers: Any) -> None:
    """Adds `checkpoints` to the command line."""
    parser = add_command(
        subparsers,
        "checkpoints",
        "list the checkpoints of a job",
        EPILOG,
        description="Lists the latest checkpoints and savepoints of a checkpoint directory, with duration and size.",
    )
    parser.add_argument(
        "checkpoint_dir",
        metavar="CHECKPOINT_DIR",
        help="the job's checkpoint directory; the job may be running",
    )
    parser.add_argument("--last", metavar="N", type=int, default=20, help="show at most N (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the history, oldest first."""
    from emberflow.engines.job.checkpoint_history import FILE, read_history
    from emberflow.engines.job.manifest import NAME

    home = Path(args.checkpoint_dir)
    if not (home / NAME).exists() and not (home / FILE).exists():
        raise CheckpointUnusable(
            f"{home} is not a checkpoint directory",
            way_out="name the directory given as checkpoint_dir or --checkpoint-dir",
        )
    records = read_history(home)[-args.last :]
    if args.json:
        for record in records:
            print(json.dumps(asdict(record)))
        return ExitCode.OK
    if not records:
        print("no checkpoint yet")
        return ExitCode.OK
    print(f"{'id':>8}  {'kind':10}  {'began':19}  {'took':>9}  {'size':>10}")
    for record in records:
        began = dt.datetime.fromtimestamp(record.started_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
        note = record.path if record.outcome == "complete" else record.outcome
        line = (
            f"{record.id:>8}  {record.kind:10}  {began}  {record.duration_ms:>6} ms  {size(record.bytes):>10}"
        )
        print(f"{line}  {clean(note)}".rstrip())
    return ExitCode.OK
