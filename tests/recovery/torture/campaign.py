"""Many seeds, a few at a time: a line for each, a table for all."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.machine import facts, moment
from tests.recovery.torture.plan import draw
from tests.recovery.torture.run import Result, run_in_process

_SHOWN = 3
_COLUMNS: dict[str, Callable[[Result], int]] = {
    "runs": lambda result: 1,
    "faults injected": lambda result: len(result.struck),
    "starts": lambda result: result.starts,
    "outputs": lambda result: result.outputs,
    "calls": lambda result: result.calls,
    "repeated after an error response": lambda result: result.asked_again_after_error,
    "in flight, made again": lambda result: result.repeated_in_flight,
    "recorded, made again": lambda result: result.repeated_recorded,
    "broken runs": lambda result: bool(result.violations),
}


def campaign(
    seeds: Sequence[int], *, at_once: int, short: bool, engine: str | None, report: Path | None
) -> int:
    """The exit code: 1 if any run violated a guarantee."""
    home = Path(tempfile.mkdtemp(prefix="torture-"))

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
            print(line_of(result), flush=True)
            if report is not None:
                report.write_text(report_of(results, time.monotonic() - began))
    print("", *table_of(results), "", sep="\n")
    broken = [result for result in results if result.violations]
    print(f"{len(results)} runs in {time.monotonic() - began:.0f} s, {len(broken)} of them broken")
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
        line += "".join(f"\n    {failure}" for failure in result.failures[-_SHOWN:])
    return line


def command_of(result: Result) -> str:
    options = ["--short"] * result.short + [f"--engine {result.engine}"] * bool(result.engine)
    more = f' ARGS="{" ".join(options)}"' if options else ""
    return f"make torture N=1 SEED={result.seed}{more}"


def table_of(results: list[Result]) -> list[str]:
    """In Markdown: one row per host, and one for all."""
    rows = [f"| host | {' | '.join(_COLUMNS)} |", f"|---|{'---:|' * len(_COLUMNS)}"]
    for host in [*sorted({result.host for result in results}), "all"]:
        of_host = [result for result in results if host in ("all", result.host)]
        sums = [sum(map(count, of_host)) for count in _COLUMNS.values()]
        rows.append(f"| {host} | {' | '.join(f'{number:,}' for number in sums)} |")
    return rows


def report_of(results: list[Result], seconds: float) -> str:
    """A page for the documentation."""
    machine = ", ".join(f"{name} {value}" for name, value in {**facts(), **moment()}.items() if value)
    seeds = f"{results[0].seed} to {results[-1].seed}"
    others = sorted({result.engine for result in results if result.engine})
    more = f', ARGS="--engine {others[0]}"' if others else ""
    lines = [
        "# Torture test results",
        "",
        f"`make torture N={len(results)} SEED={results[0].seed}`{more}: seeds {seeds} in {seconds:.0f} s. "
        "How to read it: [torture.md](torture.md).",
        "",
        machine,
        "",
        *table_of(results),
        "",
        "```text",
        *map(line_of, results),
        "```",
    ]
    return "\n".join(lines) + "\n"
