"""`emberflow approvals`: lists the questions that agents ask people, and answers them."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from emberflow.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from emberflow.cli.subcommands import add_command_group, directory_command
from emberflow.rendering.plain_text import clean

if TYPE_CHECKING:
    from emberflow.approvals.answering import StoredQuestion

EPILOG = f"""\
examples:
  emberflow approvals list state/                                   questions waiting for an answer
  emberflow approvals list state/ --all --json | jq .answer         answered ones too
  emberflow approvals answer state/ 3f2a approve                    a prefix of the id is enough
  emberflow approvals answer state/ 3f2a reject --note "too much"

DIR is the checkpoint directory of the job. The run that asked continues within a second if the job is running, otherwise
when the job is started again. Agents ask with `await ctx.ask_human(...)`.

{EXIT_CODES_HELP}"""


def add_parser(subparsers: Any) -> None:
    """Adds `approvals` to the command line."""
    commands = add_command_group(
        subparsers,
        "approvals",
        "answer questions of agents",
        EPILOG,
        description="Lists the questions of agents that wait for a person, and answers them.",
    )
    listing = directory_command(commands, "list", "print open questions, oldest first", EPILOG)
    listing.add_argument("--all", action="store_true", help="include answered and expired questions")
    listing.add_argument("--json", action="store_true", help="one JSON object per line")
    listing.set_defaults(run=run_list)
    answering = directory_command(commands, "answer", "answer a question", EPILOG)
    answering.add_argument("id", metavar="ID", help="the question's id, or a prefix of it")
    answering.add_argument("answer", metavar="ANSWER", help="one of the question's options, e.g. approve")
    answering.add_argument("--note", default="", help="a reason; the agent receives it as answer.note")
    answering.add_argument("--by", metavar="WHO", help="who answers (default: the current user)")
    answering.add_argument("--json", action="store_true", help="print the question as JSON")
    answering.set_defaults(run=run_answer)


def run_list(args: argparse.Namespace) -> int:
    from emberflow.approvals.answering import questions

    found = questions(args.directory, answered=args.all)
    for item in found:
        print(json.dumps(item.to_json()) if args.json else _shown(item))
    if not found:
        print(f"there are no open questions in {args.directory}", file=sys.stderr)
    return ExitCode.OK


def run_answer(args: argparse.Namespace) -> int:
    from emberflow.approvals.answering import give_answer

    item = give_answer(args.directory, args.id, args.answer, note=args.note, by=args.by)
    if args.json:
        print(json.dumps({**item.to_json(), "answer": args.answer}))
    else:
        print(f"answered {item.id} with {args.answer!r}: {clean(item.question)}")
    return ExitCode.OK


def _shown(item: StoredQuestion) -> str:
    now_ms = time.time_ns() // 1_000_000
    asked = dt.datetime.fromtimestamp(item.asked_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{item.id}  {asked}  {clean(item.agent)}/{clean(item.action)} for {clean(item.key)}"]
    lines.append(f"  {clean(item.question)}")
    if item.answer is not None:
        note = f" ({clean(item.answer['note'])})" if item.answer.get("note") else ""
        by = f" by {clean(item.answer['by'])}" if item.answer.get("by") else ""
        lines.append(
            "  expired" if item.answer.get("expired") else f"  answered {item.answer['answer']!r}{by}{note}"
        )
        return "\n".join(lines)
    choice = " | ".join(map(clean, item.options)) or "any text"
    due = item.expires_at_ms
    left = "" if due is None else f"; expires in {max(0, due - now_ms) // 1000} s"
    lines.append(f"  answer: {choice}{left}")
    return "\n".join(lines)
