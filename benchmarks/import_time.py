"""`import emberflow`: the total run time of a Python process that does nothing else, and which packages it imports."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.measurement import Measure, Options, at_most

HEAVY = ("pyspark", "pandas", "pyarrow")
CODE = """
import sys, time
started = time.perf_counter()
import emberflow
took = time.perf_counter() - started
print(took * 1000, *[name for name in {heavy!r} if name in sys.modules])
"""
PROGRAM = "from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, action"


def run(options: Options) -> list[Measure]:
    process_ms: list[float] = []
    import_ms: list[float] = []
    heavy: set[str] = set()
    _python(CODE.format(heavy=HEAVY))  # the first one writes bytecode and warms the page cache
    for _ in range(options.pick(5, 15)):
        took_ms, out = _python(CODE.format(heavy=HEAVY))
        process_ms.append(took_ms)
        import_ms.append(float(out[0]))
        heavy.update(out[1:])
    bare_ms = statistics.median(_python("pass")[0] for _ in range(5))
    agents_ms = statistics.median(_python("import emberflow.agents")[0] for _ in range(options.pick(5, 15)))
    program_ms = statistics.median(_python(PROGRAM)[0] for _ in range(options.pick(5, 15)))
    streams_ms = statistics.median(_python("import emberflow.streams")[0] for _ in range(5))
    return [
        Measure(
            name="python -c 'import emberflow'",
            value=statistics.median(process_ms),
            unit="ms",
            bar=at_most(150),
        ),
        Measure(
            name="heavy packages imported",
            value=len(heavy),
            unit="",
            bar=at_most(0),
            note=" ".join(sorted(heavy)),
        ),
        Measure(name="the import alone", value=statistics.median(import_ms), unit="ms"),
        Measure(
            name="python -c 'import emberflow.agents'",
            value=agents_ms,
            unit="ms",
            bar=at_most(200),
        ),
        Measure(name=f"python -c '{PROGRAM}'", value=program_ms, unit="ms"),
        Measure(name="python -c 'import emberflow.streams'", value=streams_ms, unit="ms"),
        Measure(name="python -c 'pass'", value=bare_ms, unit="ms"),
    ]


def _python(code: str) -> tuple[float, list[str]]:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return (time.perf_counter() - started) * 1000, done.stdout.split()
