"""`emberflow savepoint`: creates savepoints from checkpoint directories, inspects and edits them."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command, add_command_group
from emberflow.errors import InvalidArgument
from emberflow.plan.local_folders import local_folder
from emberflow.rendering.masked_repr import masked_repr
from emberflow.rendering.plain_text import clean
from emberflow.rendering.secret_names import MASK, is_hidden

if TYPE_CHECKING:
    from emberflow.savepoints import Savepoint, StateStep

EPILOG = f"""\
examples:
  emberflow savepoint create state/orders savepoints/monday     from a stopped job's checkpoint directory
  emberflow savepoint inspect savepoints/monday                 steps, sources, sizes
  emberflow savepoint inspect savepoints/monday --step totals --key ann
  emberflow savepoint edit savepoints/monday savepoints/fixed --step totals --key ann --set count=0
  emberflow savepoint edit savepoints/fixed savepoints/without --step totals --key bob --delete
  emberflow run pipeline.py --from-savepoint savepoints/fixed

A key is parsed as JSON if it is valid JSON (1, "1", ["a", 2]; a list stands for a tuple), otherwise taken as a string.

{EXIT_CODES_HELP}"""

_SHOWN_KEYS = 20
_LONGEST = 1_000_000


def add_parser(subparsers: Any) -> None:
    """Adds `savepoint` to the command line."""
    commands = add_command_group(
        subparsers,
        "savepoint",
        "create, inspect and edit savepoints",
        EPILOG,
        description="A savepoint is a copy of a job's state that another version of the program can start from.",
    )
    create = add_command(commands, "create", "create a savepoint from a job's checkpoint directory", EPILOG)
    create.add_argument("checkpoint_dir", metavar="CHECKPOINT_DIR", help="of a job that is not running")
    create.add_argument("savepoint_dir", metavar="SAVEPOINT_DIR", help="must not exist yet")
    create.add_argument("--master", help='Spark master for reading the state of a Spark job, e.g. "local[2]"')
    create.add_argument(
        "--call-store",
        metavar="ADDRESS",
        help="the job's option call_store, if its address contains a password or settings",
    )
    create.set_defaults(run=_create)

    inspect = add_command(commands, "inspect", "show what a savepoint contains", EPILOG)
    inspect.add_argument("path", metavar="PATH", help="the savepoint's directory")
    inspect.add_argument("--step", metavar="UID", help="show the keys of this step")
    inspect.add_argument("--key", metavar="K", help="show only this key, with all its values")
    inspect.add_argument(
        "--limit", metavar="N", type=int, default=_SHOWN_KEYS, help=f"at most N keys (default {_SHOWN_KEYS})"
    )
    inspect.add_argument("--json", action="store_true", help="as JSON; with --step: one key per line")
    inspect.set_defaults(run=_inspect)

    edit = add_command(commands, "edit", "write an edited copy of a savepoint", EPILOG)
    edit.add_argument("path", metavar="PATH", help="the savepoint's directory; it is not modified")
    edit.add_argument("out", metavar="OUT", help="the new savepoint; must not exist yet")
    edit.add_argument("--step", metavar="UID", required=True, help="the step whose state is changed")
    edit.add_argument("--key", metavar="K", required=True, help="the key whose state is changed")
    change = edit.add_mutually_exclusive_group(required=True)
    change.add_argument(
        "--set", metavar="NAME=JSON", action="append", help="new value of one of its states; may be repeated"
    )
    change.add_argument("--delete", action="store_true", help="remove the key's state")
    edit.set_defaults(run=_edit)


def _create(args: argparse.Namespace) -> int:
    from emberflow.engines.job.offline_savepoint import create_savepoint
    from emberflow.savepoints.stand_ins import allow_unknown_classes

    allow_unknown_classes()
    target = local_folder("a savepoint", args.savepoint_dir)
    notes = create_savepoint(args.checkpoint_dir, target, master=args.master, call_store=args.call_store)
    savepoint = _open(target)
    print(f"{target}: {_totals(savepoint)}")
    for note in notes:
        print(f"note: {note}")
    return ExitCode.OK


def _inspect(args: argparse.Namespace) -> int:
    savepoint = _open(args.path)
    savepoint.check()
    if args.step is None:
        _show_manifest(savepoint, as_json=args.json)
        return ExitCode.OK
    step = savepoint.step(args.step)
    if args.key is not None:
        key = parse_key(args.key)
        values = step.get(key)
        if values is None:
            raise InvalidArgument(
                f"step {args.step!r} has no key {key!r}",
                way_out=f"emberflow savepoint inspect {args.path} --step {args.step} shows its keys",
            )
        _show_key(key, values, as_json=args.json)
        return ExitCode.OK
    for shown, (key, values) in enumerate(step.items()):
        if shown >= args.limit:
            print(f"… {step.summary.keys - shown:,} more (--limit)")
            break
        _show_key(key, values, as_json=args.json)
    return ExitCode.OK


def _edit(args: argparse.Namespace) -> int:
    savepoint = _open(args.path)
    step = savepoint.step(args.step)
    key = parse_key(args.key)
    if args.delete:
        step.delete(key)
    else:
        step.update(key, **dict(_assignment(text, step, key) for text in args.set))
    savepoint.write(args.out)
    print(f"{args.out}: {_totals(_open(args.out))}")
    return ExitCode.OK


def _open(path: str) -> Savepoint:
    from emberflow.savepoints import Savepoint
    from emberflow.savepoints.stand_ins import allow_unknown_classes

    allow_unknown_classes()
    return Savepoint.read(path)


def _assignment(text: str, step: StateStep, key: Any) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidArgument(f"{text!r} is not NAME=JSON", way_out="write e.g. --set count=0")
    known = step.get(key)
    if known is not None and name not in known:
        raise InvalidArgument(
            f"key {key!r} has no state {name!r}", way_out=f"its states are: {', '.join(known)}"
        )
    try:
        return name, _like((known or {}).get(name), json.loads(value))
    except ValueError as error:
        raise InvalidArgument(
            f"the value {value!r} is not JSON", way_out="strings need quotes: --set name='\"ann\"'"
        ) from error


def _like(before: Any, value: Any) -> Any:
    """JSON has no tuples: where the old value has a tuple, the new list becomes one."""
    return _tuples(value) if isinstance(before, tuple) else value


def parse_key(text: str) -> Any:
    """Parses a key as given on the command line."""
    try:
        return _tuples(json.loads(text))
    except ValueError:
        return text


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _show_manifest(savepoint: Savepoint, *, as_json: bool) -> None:
    from dataclasses import asdict

    manifest = savepoint.manifest
    if as_json:
        print(json.dumps({**asdict(manifest), "bytes": manifest.bytes}, indent=2))
        return
    created = dt.datetime.fromtimestamp(manifest.created_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    print(f"savepoint of {manifest.job_name!r} on {manifest.engine}, {created}, format {manifest.format}")
    print(f"{_totals(savepoint)}, {manifest.max_parallelism} key groups, epoch {manifest.epoch}")
    for uid, source in savepoint.sources.items():
        ended = sum(source.ended)
        print(f"  source {clean(uid)}: {len(source.positions)} channels{f', {ended} ended' if ended else ''}")
    for uid, step in savepoint.steps.items():
        summary = step.summary
        parts = [f"{summary.keys:,} keys"]
        for count, name in (
            (summary.event_timers, "event-time timers"),
            (summary.processing_timers, "processing-time timers"),
            (summary.parked, "runs in flight"),
        ):
            if count:
                parts.append(f"{count:,} {name}")
        print(f"  {summary.kind} {clean(uid)}: {', '.join(parts)}, {size(summary.bytes)}")


def _show_key(key: Any, values: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"key": key, "values": values}, default=repr))
        return
    print(masked_repr(key, _LONGEST))
    for name, value in values.items():
        shown = MASK if is_hidden(name, value) else masked_repr(value, _LONGEST)
        print(f"  {clean(name)} = {shown}")


def _totals(savepoint: Savepoint) -> str:
    keys = sum(step.summary.keys for step in savepoint.steps.values())
    return f"{len(savepoint.steps)} steps with {keys:,} keys, {size(savepoint.manifest.bytes)}"


def size(count: int) -> str:
    """A number of bytes in readable units."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
