"""`emberflow events`: shows what agents did, from their event logs."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command, add_command_group

if TYPE_CHECKING:
    from emberflow.observability.event_reader import LoggedEvent, ReadCounts

EPILOG = f"""\
examples:
  emberflow events show logs/                          all events, by time
  emberflow events show logs/ --tree --last 5          the last five runs, each as a tree
  emberflow events show logs/ --key user-1 --since 10m what one key did in the last ten minutes
  emberflow events show logs/ --type OutputEvent --json | jq .attributes
  emberflow events show logs/ --follow                 as they happen, until Ctrl-C

PATH is the directory given as the agent's option 'baseLogDir' (all agents and processes below it are merged by
time), or one .jsonl file. An event that was logged again by a repeated micro-batch is shown once. Times are UTC.

{EXIT_CODES_HELP}"""

FOLLOW_PAUSE_S = 0.5
_LAST_RUNS = 20
_LAST_BEFORE_FOLLOWING = 20
_DURATION = re.compile(r"(\d+)([smhd])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_parser(subparsers: Any) -> None:
    """Adds `events` to the command line."""
    commands = add_command_group(
        subparsers,
        "events",
        "show what agents did",
        EPILOG,
        description="Reads the event logs of agents.",
    )
    show = add_command(
        commands,
        "show",
        "print events as a table, as trees or as JSON",
        EPILOG,
        description="Prints the events of a log, oldest first.",
    )
    show.add_argument("path", metavar="PATH", help="a directory with event logs, or one file")
    form = show.add_mutually_exclusive_group()
    form.add_argument(
        "--tree", action="store_true", help="each run as a tree: input, actions, events, errors"
    )
    form.add_argument("--json", action="store_true", help="one JSON object per line, as in the log")
    show.add_argument("--agent", metavar="A", help="only this agent")
    show.add_argument("--key", metavar="K", help="only this key; one that is a list as JSON: '[\"a\", 1]'")
    show.add_argument("--run", metavar="R", dest="run_id", help="only this run; a prefix of its id is enough")
    show.add_argument("--type", metavar="T", help="only this event type; with --tree: runs that contain one")
    show.add_argument(
        "--since", metavar="TIME", type=_moment, help="2026-01-31T12:00, or 30s, 10m, 2h, 1d ago"
    )
    show.add_argument(
        "--last",
        metavar="N",
        type=_positive,
        help=f"only the last N events; with --tree: runs, default {_LAST_RUNS}",
    )
    show.add_argument("--follow", action="store_true", help="keep printing new events until Ctrl-C")
    show.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the selected events; a path that does not exist is wrong usage, a log without a match is not."""
    try:
        return _follow(args) if args.follow else _show(args)
    except BrokenPipeError:
        # `| head` has closed the pipe. Python would complain once more while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


def _show(args: argparse.Namespace) -> int:
    from emberflow.observability.event_reader import ReadCounts, read_events
    from emberflow.observability.event_view import table_lines

    counts = ReadCounts()
    events: Iterable[LoggedEvent] = read_events(
        args.path,
        agent=args.agent,
        key=_key(args.key),
        run=args.run_id,
        type=None if args.tree else args.type,
        since=args.since,
        counts=counts,
    )
    if args.tree:
        lines = _trees(events, args)
    else:
        chosen = events if args.last is None else deque(events, maxlen=args.last)
        lines = map(_json_line, chosen) if args.json else table_lines(chosen, width=_width(), color=_color())
    printed = 0
    for line in lines:
        _print(line)
        printed += 1
    sys.stdout.flush()
    _explain(args.path, counts, printed)
    return ExitCode.OK


def _trees(events: Iterable[LoggedEvent], args: argparse.Namespace) -> Iterator[str]:
    from emberflow.observability.event_reader import EventFilter
    from emberflow.observability.event_runs import runs_of
    from emberflow.observability.event_view import tree_lines

    runs = runs_of(events)
    wanted = EventFilter(type=args.type)
    chosen = [run for run in runs if any(map(wanted.matches, run))]
    last = args.last or _LAST_RUNS
    for number, one in enumerate(chosen[-last:]):
        if number:
            yield ""
        yield from tree_lines(one, width=_width(), color=_color())
    if len(chosen) > last and args.last is None:
        _note(f"the last {last} of {len(chosen)} runs; --last {len(chosen)} shows all")


def _follow(args: argparse.Namespace) -> int:
    from emberflow.errors import InvalidArgument
    from emberflow.observability.event_reader import EventFilter, EventFollower
    from emberflow.observability.event_view import TableView

    if args.tree:
        raise InvalidArgument(
            "--tree shows whole runs, --follow shows events as they come", way_out="leave one out"
        )
    if not Path(args.path).expanduser().exists():
        _note(f"there is no {args.path!r} yet; waiting for it (Ctrl-C ends)")
    since_ms = None if args.since is None else int(args.since.timestamp() * 1000)
    wanted = EventFilter(
        agent=args.agent, key=_key(args.key), run=args.run_id, type=args.type, since_ms=since_ms
    )
    follower = EventFollower(args.path, wanted)
    view: TableView | None = None
    try:
        events = follower.poll(last=args.last or _LAST_BEFORE_FOLLOWING)
        while True:
            if events and view is None and not args.json:
                view = TableView(events, width=_width(), color=_color())
                _print(view.header())
            for event in events:
                _print(_json_line(event) if view is None else view.row(event))
            sys.stdout.flush()
            time.sleep(FOLLOW_PAUSE_S)
            events = follower.poll()
    except KeyboardInterrupt:
        return ExitCode.OK


def _explain(path: str, counts: ReadCounts, printed: int) -> None:
    if not counts.files:
        _note(
            f"there are no event logs in {path!r}: no .jsonl file; "
            "an agent writes them if its option 'baseLogDir' is set and its 'event-log.level' is not OFF"
        )
    elif not counts.events:
        _note(f"there are no events in {path!r} ({_counted(counts.files, 'file')})")
    elif not printed:
        _note(f"none of the {_counted(counts.events, 'event')} in {path!r} matches")
    if counts.bad:
        _note(f"skipped {_counted(counts.bad, 'line')} without a valid event")
    if counts.torn:
        _note(f"skipped a truncated line at the end of {_counted(counts.torn, 'file')}")
    if counts.newer:
        _note(f"skipped {_counted(counts.newer, 'line')} of a newer format; a newer emberflow reads them")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _print(line: str) -> None:
    try:
        print(line)
    except UnicodeEncodeError:  # A terminal without UTF-8.
        encoding = sys.stdout.encoding or "ascii"
        print(line.encode(encoding, "replace").decode(encoding))


def _json_line(event: LoggedEvent) -> str:
    names = () if event["kind"] == "error" else ("action", "error")
    return json.dumps({name: value for name, value in event.items() if name not in names or value})


def _width() -> int:
    return max(shutil.get_terminal_size((120, 24)).columns, 40)


def _color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _key(text: str | None) -> Any:
    if text is None or not text.startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number greater than 0")
    return int(text)


def _moment(text: str) -> dt.datetime:
    found = _DURATION.fullmatch(text)
    try:
        if found:
            return dt.datetime.now(dt.UTC) - dt.timedelta(seconds=int(found[1]) * _UNIT_S[found[2]])
        moment = dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time like 2026-01-31T12:00 nor a duration like 10m"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
