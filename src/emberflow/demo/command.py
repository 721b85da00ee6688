"""The demo's command line: parse, run, report."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from emberflow.connectors.client_sinks import CollectSink
from emberflow.demo.observations import Observer, outcome
from emberflow.demo.report import write_report
from emberflow.demo.run_facts import RunFacts, versions
from emberflow.demo.summary import heading, next_steps, summary
from emberflow.demo.triage import build
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobMetrics
from emberflow.streams import RuntimeExecutionMode, StreamExecutionEnvironment
from emberflow.streams.program.engine_choice import default_engine

REVIEWS = 4_000
REVIEWS_PER_S = 200.0
TASKS = 2
WARM_UP_REVIEWS = 300


def main(argv: list[str] | None = None) -> int:
    """Runs the demo; returns 0 if every review was judged."""
    args = _parser().parse_args(argv)
    folder = Path(args.out) if args.out else Path(tempfile.mkdtemp(prefix="emberflow-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    if args.quiet:
        os.environ["EMBERFLOW_QUIET"] = "1"
    facts = RunFacts(
        engine=args.engine,
        reviews=args.events,
        reviews_per_s=args.rate,
        parallelism=TASKS,
        versions=versions(),
    )
    if not args.quiet:
        print(heading(facts), flush=True)
    began = time.monotonic()
    if args.engine == "spark":
        _say("starting Spark and warming it up …", quiet=args.quiet)
        _run(_environment(args.engine), "warm-up", reviews=WARM_UP_REVIEWS, reviews_per_s=None)
        _say("", quiet=args.quiet)
    facts = replace(facts, start_up_s=time.monotonic() - began)
    env, start_ms = _environment(args.engine), int(time.time() * 1000)
    observer, graph, metrics = _run(
        env, "demo", reviews=args.events, reviews_per_s=args.rate, start_ms=start_ms
    )
    result = outcome(observer, reviews_per_s=args.rate, start_ms=start_ms)
    total_s = time.monotonic() - began
    report = write_report(folder / "report.html", result, facts, graph, metrics, total_s)
    if not args.quiet:
        print(summary(result, facts, metrics, total_s, color=sys.stdout.isatty()))
    print(f"report      {report.resolve().as_uri()}")
    if not args.quiet:
        print(next_steps(facts.engine))
    return _checked(len(result.deliveries), args.events)


def _environment(engine: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(engine=engine, parallelism=TASKS)
    return env.set_runtime_mode(RuntimeExecutionMode.STREAMING)


def _run(
    env: StreamExecutionEnvironment,
    name: str,
    *,
    reviews: int,
    reviews_per_s: float | None,
    start_ms: int = 0,
) -> tuple[Observer, JobGraph, JobMetrics]:
    observer = Observer()
    build(
        env,
        reviews=reviews,
        reviews_per_s=reviews_per_s,
        start_ms=start_ms,
        verdicts_sink=CollectSink(observer.on_verdicts),
        escalations_sink=CollectSink(observer.on_escalations),
        moods_sink=CollectSink(observer.on_moods),
    )
    graph = env.job_graph(name)
    return observer, graph, env.execute(name).metrics


def _say(text: str, *, quiet: bool) -> None:
    """A line that the next one replaces; only on a terminal."""
    if not quiet and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def _checked(arrived: int, wanted: int) -> int:
    if arrived == wanted:
        return 0
    print(
        f"{arrived:,} verdicts arrived instead of {wanted:,}: this is a bug, please report it",
        file=sys.stderr,
    )
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emberflow demo",
        description="An agent on a live stream: a model call per review, memory per product, unhappy customers escalated.",
    )
    parser.add_argument(
        "--engine",
        choices=("spark", "local"),
        default=default_engine(),
        help="where to run (default: spark if pyspark is installed)",
    )
    parser.add_argument(
        "--events", type=_positive, default=REVIEWS, help=f"how many reviews (default: {REVIEWS:,})"
    )
    parser.add_argument(
        "--rate", type=_rate, default=REVIEWS_PER_S, help=f"reviews per second (default: {REVIEWS_PER_S:g})"
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the report (default: a new temporary folder)")
    parser.add_argument("--quiet", action="store_true", help="print only the location of the report")
    return parser


def _positive(text: str) -> int:
    number = int(text.replace(",", "").replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _rate(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be greater than zero")
    return number
