"""`emberflow dead-letters`: lists the inputs that agents could not process, and redrives them."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command_group, directory_command
from emberflow.observability.terminal_text import fit
from emberflow.rendering.masked_repr import masked_repr, without_secrets
from emberflow.rendering.plain_text import clean
from emberflow.rendering.secret_names import scrub

if TYPE_CHECKING:
    from emberflow.dead_letters.redrive import Letter

EPILOG = f"""\
examples:
  emberflow dead-letters list state/                       what failed, oldest first
  emberflow dead-letters list state/ --json | jq .error
  emberflow dead-letters show state/ 1f0c                  one letter in full; a prefix of its id is enough
  emberflow dead-letters redrive state/ 1f0c 77ab          retry two of them
  emberflow dead-letters redrive state/ --all              retry all that were not redriven yet
  emberflow dead-letters redrive state/ --all --to inputs.jsonl

DIR is the checkpoint directory of the job. Dead letters are written if the agents' option 'on-error' is 'dead-letter' and
the program does not consume their stream itself. The job processes a redriven input exactly once, as an input of its
key: within a second if it is running, otherwise when it is started again. Letters of a job with bounded input are
rejected, because such a job reads no further input: write the inputs to a file with --to.

{EXIT_CODES_HELP}"""

_WIDTH = 100


def add_parser(subparsers: Any) -> None:
    """Adds `dead-letters` to the command line."""
    commands = add_command_group(
        subparsers,
        "dead-letters",
        "list and redrive inputs that agents could not process",
        EPILOG,
        description="Lists the dead letters of agents, and redrives them.",
    )
    listing = _command(commands, "list", "print the dead letters, oldest first")
    listing.add_argument("--new", action="store_true", help="only letters that were not redriven")
    listing.set_defaults(run=run_list)
    showing = _command(commands, "show", "print one letter in full")
    showing.add_argument("id", metavar="ID", help="the letter's id, or a prefix of it")
    showing.set_defaults(run=run_show)
    driving = _command(commands, "redrive", "process letters again")
    driving.add_argument("ids", metavar="ID", nargs="*", help="ids of letters, or prefixes of them")
    driving.add_argument("--all", action="store_true", help="all letters that were not redriven")
    driving.add_argument("--again", action="store_true", help="include letters that were redriven before")
    driving.add_argument(
        "--to", metavar="FILE", help='write the inputs to this file instead, as lines {"key": …, "value": …}'
    )
    driving.set_defaults(run=run_redrive)


def _command(commands: Any, name: str, what: str) -> argparse.ArgumentParser:
    made = directory_command(commands, name, what, EPILOG)
    made.add_argument("--json", action="store_true", help="one JSON object per line")
    return made


def run_list(args: argparse.Namespace) -> int:
    from emberflow.dead_letters.redrive import letters

    found = [letter for letter in letters(args.directory) if not (args.new and letter.redriven)]
    for letter in found:
        print(json.dumps(letter.to_json()) if args.json else _line(letter))
    if not found:
        print(f"there are no dead letters in {args.directory}", file=sys.stderr)
    return ExitCode.OK


def run_show(args: argparse.Namespace) -> int:
    from emberflow.dead_letters.redrive import chosen

    (letter,) = chosen(args.directory, [args.id])
    if args.json:
        print(json.dumps(letter.to_json()))
        return ExitCode.OK
    for name, value in letter.to_json().items():
        text = scrub(value if isinstance(value, str) else json.dumps(without_secrets(value)))
        if name == "failed_ms":
            text = f"{value} ({_time(letter)} UTC)"
        print(f"{name:<11} {clean(text)}")
    return ExitCode.OK


def run_redrive(args: argparse.Namespace) -> int:
    from emberflow.dead_letters.redrive import chosen, letters, redrive, to_file
    from emberflow.errors import InvalidArgument

    if bool(args.ids) == bool(args.all):
        raise InvalidArgument("no letters were selected", way_out="give their ids, or --all")
    if args.all:
        # A letter without an input cannot be redriven: an error if it was named, skipped with --all.
        wanted = [letter for letter in letters(args.directory) if letter.body.get("record")]
        wanted = [letter for letter in wanted if args.again or not letter.redriven]
    else:
        wanted = chosen(args.directory, args.ids)
    if args.to:
        to_file(wanted, args.to)
        print(f"wrote {_counted(len(wanted))} to {args.to}")
        return ExitCode.OK
    done = redrive(wanted, again=args.again)
    for letter in done:
        print(json.dumps(letter.to_json()) if args.json else f"redriven {_line(letter)}")
    left = len(wanted) - len(done)
    if left:
        print(
            f"skipped {_counted(left)}: already redriven; --again redrives once more",
            file=sys.stderr,
        )
    if not wanted:
        print(f"there is nothing to redrive in {args.directory}", file=sys.stderr)
    return ExitCode.OK


def _line(letter: Letter) -> str:
    body = letter.body
    where = f"{body['agent']}/{body['action']}" if body["action"] else body["agent"]
    mark = "  (redriven)" if letter.redriven else ""
    error = f"{body['error_type']}: {body['error']}" if body["error"] else body["error_type"]
    key = masked_repr(body["key"], _WIDTH)
    return (
        f"{clean(letter.id)}  {_time(letter)}  {clean(where)}  {fit(key, 30)}  "
        f"{fit(clean(scrub(error)), _WIDTH)}{mark}"
    )


def _time(letter: Letter) -> str:
    return dt.datetime.fromtimestamp(letter.body["failed_ms"] / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _counted(count: int) -> str:
    return f"{count} letter{'' if count == 1 else 's'}"
