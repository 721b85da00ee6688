"""Runs one benchmark in a separate process: `python -m benchmarks.child NAME RESULT.json [--quick]`.

Its own process, so that no benchmark inherits another one's memory, warm JVM or crash.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measurement import Options, Skipped


def measure(module: str, *, quick: bool) -> dict[str, Any]:
    """The entry of one benchmark: its measures, or why there are none."""
    options = Options(quick=quick)
    entry: dict[str, Any] = {**machine.moment(), "quick": quick}
    started = time.monotonic()
    try:
        measures = importlib.import_module(module).run(options)
        entry["measures"] = [item.to_dict() for item in measures]
    except Skipped as reason:
        entry["skipped"] = str(reason)
    except Exception:
        entry["failed"] = traceback.format_exc()
    entry["seconds"] = round(time.monotonic() - started, 1)
    if options.details:
        entry["details"] = options.details
    return entry


def main(argv: list[str]) -> int:
    name, target, *flags = argv
    entry = measure(f"benchmarks.{name}", quick="--quick" in flags)
    Path(target).write_text(json.dumps(entry), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
