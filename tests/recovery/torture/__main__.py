"""`python -m tests.recovery.torture --runs 200 --seed 1`: see docs/torture.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.recovery.torture.campaign import campaign
from tests.recovery.torture.run import print_one


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many seeds")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--engine", help="local, spark[2], spark[2,4] or cluster, instead of each seed's own")
    parser.add_argument("--short", action="store_true", help="the short form of the seeds, as in the tests")
    parser.add_argument("--report", type=Path, help="also write lines and summary to this file")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--small-disk", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.one is not None:
        print_one(
            given.one, given.folder, short=given.short, engine=given.engine, small_disk=given.small_disk
        )
        return 0
    seeds = range(given.seed, given.seed + given.runs)
    return campaign(seeds, at_once=given.at_once, short=given.short, engine=given.engine, report=given.report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
