"""Settings and versions of a run, for the summary and the report."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    engine: str
    reviews: int
    reviews_per_s: float
    parallelism: int
    start_up_s: float = 0.0
    """Until the engine was warm: a JVM, workers, the first plans."""
    versions: dict[str, str]


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for package in ("emberflow", "pyspark", "pyarrow", "pandas"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    return found
