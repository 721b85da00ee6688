"""Many seeds, a few at once: a line for each, a table for all."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.recovery.torture.plan import draw
from tests.recovery.torture.run import Result, run_in_process

_SHOWN = 3


def campaign(
    seeds: Iterable[int], *, at_once: int, short: bool, engine: str | None, report: Path | None
) -> int:
    """The exit code: 1 if any promise was broken in any run."""
    seeds = list(seeds)
    home = Path(tempfile.mkdtemp(prefix="torture-"))
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        print(text, flush=True)

    def one(seed: int) -> Result:
        folder = home / str(seed)
        plan = draw(seed, short=short, engine=engine)
        try:
            result = run_in_process(plan, folder)
        except RuntimeError as error:
            result = Result.without(plan, str(error), str(folder))
        if not result.violations:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    began = time.monotonic()
    results: list[Result] = []
    with ThreadPoolExecutor(at_once) as pool:
        for result in pool.map(one, seeds):
            results.append(result)
            say(line_of(result))
    say("")
    for line in summary(results, time.monotonic() - began):
        say(line)
    if report is not None:
        report.write_text("\n".join(lines) + "\n")
    broken = [result for result in results if result.violations]
    if not broken:
        shutil.rmtree(home, ignore_errors=True)
    return 1 if broken else 0


def line_of(result: Result) -> str:
    verdict = "kept"
    if result.violations:
        more = f"; and {len(result.violations) - _SHOWN} more" if len(result.violations) > _SHOWN else ""
        verdict = f"BROKEN: {'; '.join(result.violations[:_SHOWN])}{more}"
    line = (
        f"seed {result.seed:<5} {result.host:<12} {result.seconds:5.1f} s  {result.starts} starts  "
        f"calls {result.calls} / in flight again {result.repeated_in_flight} / "
        f"recorded again {result.repeated_recorded}  {verdict}  [{result.plan}]"
    )
    if result.violations:
        line += f"\n    again: {command_of(result)}\n    kept in {result.folder}"
        line += "".join(f"\n    {failure}" for failure in result.failures[-3:])
    return line


def command_of(result: Result) -> str:
    options = ["--short"] * result.short + [f"--engine {result.engine}"] * bool(result.engine)
    more = f' ARGS="{" ".join(options)}"' if options else ""
    return f"make torture N=1 SEED={result.seed}{more}"


def summary(results: list[Result], seconds: float) -> list[str]:
    """A table of hosts in Markdown, and the machine's facts."""
    head = [
        "runs",
        "blows struck",
        "starts",
        "outputs",
        "calls",
        "asked again after an error answer",
        "in flight, made again",
        "recorded, made again",
        "broken runs",
    ]
    rows = [f"| host | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}"]
    hosts = sorted({result.host for result in results})
    for host in [*hosts, "all"]:
        of_host = [result for result in results if host in ("all", result.host)]
        numbers = [
            len(of_host),
            sum(len(result.struck) for result in of_host),
            sum(result.starts for result in of_host),
            sum(result.outputs for result in of_host),
            sum(result.calls for result in of_host),
            sum(result.asked_again_after_error for result in of_host),
            sum(result.repeated_in_flight for result in of_host),
            sum(result.repeated_recorded for result in of_host),
            sum(bool(result.violations) for result in of_host),
        ]
        rows.append(f"| {host} | {' | '.join(f'{number:,}' for number in numbers)} |")
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {platform.machine()}"
    return [*rows, "", f"{seconds:.0f} s on {machine}, Python {sys.version.split()[0]}"]
