"""Commands of a command, such as `emberflow approvals list`, that look into a job's checkpoint directory."""

from __future__ import annotations

import argparse
from typing import Any


def directory_command(kinds: Any, name: str, what: str, epilog: str) -> argparse.ArgumentParser:
    """One of them; `what` says what it does, in a few words."""
    made: argparse.ArgumentParser = kinds.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("directory", metavar="DIR", help="the checkpoint directory of the job")
    return made
