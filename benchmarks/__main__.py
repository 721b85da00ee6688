"""`python -m benchmarks [names…] [--quick] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, results, table
from benchmarks.registry import BENCHMARKS, Benchmark, named

ROOT = Path(__file__).resolve().parents[1]


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        chosen = named(args.names)
    except KeyError as missing:
        known = ", ".join(benchmark.name for benchmark in BENCHMARKS)
        print(f"there is no benchmark {missing}; there are {known}", file=sys.stderr)
        return 2
    before = results.load(results.FOLDER / "latest.json")
    facts = machine.facts()
    print(f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Python {facts['python']},"
          f" Java {facts['java']}, pyspark {facts['pyspark']}, load {os.getloadavg()[0]:.2f}\n")  # fmt: skip
    entries: dict[str, Any] = {}
    for benchmark in chosen:
        print(f"{benchmark.name}: {benchmark.what} …", file=sys.stderr, flush=True)
        entries[benchmark.name] = run_apart(benchmark, quick=args.quick)
    made = results.merged(before, facts, entries)
    if not args.no_save:
        results.save(made)
    if args.json:
        results.write(made, Path(args.json))
    print(table.render(entries, before["benchmarks"] if before else {}))
    for name, entry in entries.items():
        for kind in ("failed", "skipped"):
            if kind in entry:
                print(f"\n{name} {kind}: {entry[kind]}", file=sys.stderr)
    return 1 if any("failed" in entry for entry in entries.values()) else 0


def run_apart(benchmark: Benchmark, *, quick: bool) -> dict[str, Any]:
    """Runs one benchmark in its own process group, so that a hanging one takes its JVM and workers with it."""
    limit_s = benchmark.limit_s(quick=quick)
    with tempfile.TemporaryDirectory() as folder:
        target, noise = Path(folder) / "entry.json", Path(folder) / "noise.txt"
        command = [sys.executable, "-m", "benchmarks.child", benchmark.name, str(target)]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        with noise.open("wb") as spoken:
            child = subprocess.Popen(
                command + ["--quick"] * quick,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "EMBERFLOW_QUIET": "1"},
                stdout=spoken,
                stderr=spoken,
                start_new_session=True,
            )
            try:
                failure = f"ended with exit code {child.wait(limit_s)} and no result"
            except subprocess.TimeoutExpired:
                failure = f"not done after {limit_s} s"
            finally:
                _end(child)
        if not target.exists():
            # What Spark and the JVM say is worth reading only now.
            said = noise.read_text(encoding="utf-8", errors="replace")[-4_000:]
            return {**machine.moment(), "quick": quick, "failed": f"{said}\n{failure}"}
        entry: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return entry


def _end(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures emberflow beside its bars and its neighbours.",
        epilog="benchmarks:\n" + "\n".join(f"  {item.name:<20} {item.what}" for item in BENCHMARKS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones; all of them without a name")
    parser.add_argument(
        "--quick", action="store_true", help="measure briefly: good for a look, not for a record"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results to this file as well")
    parser.add_argument("--no-save", action="store_true", help="leave results/latest.json as it is")
    return parser


if __name__ == "__main__":
    sys.exit(main())
