"""Checks of the machine for `emberflow doctor`: processors, memory, disk, environment variables that mislead Spark."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

GIB = 1024**3

# A driver of 1 GB, its Python workers and the page cache for state files.
SPARK_MEMORY_GIB = 2.0
LOCAL_MEMORY_GIB = 0.25
SPARK_DISK_GIB = 2.0
LOCAL_DISK_GIB = 0.25


class Status(StrEnum):
    """The result of a check: `BROKEN` prevents the engine from running, `WARNING` does not."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "missing"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the diagnosis."""

    name: str
    status: Status
    found: str
    fix: str
    """The command or step that fixes the problem; empty if there is none."""

    @classmethod
    def ok(cls, name: str, found: str) -> Check:
        return cls(name=name, status=Status.OK, found=found, fix="")

    @classmethod
    def warning(cls, name: str, found: str, fix: str) -> Check:
        return cls(name=name, status=Status.WARNING, found=found, fix=fix)

    @classmethod
    def broken(cls, name: str, found: str, fix: str) -> Check:
        return cls(name=name, status=Status.BROKEN, found=found, fix=fix)


def check_resources(*, for_spark: bool) -> list[Check]:
    """Processors, memory and disk; too little is only a warning, since a small job may still fit."""
    memory = LOCAL_MEMORY_GIB if not for_spark else SPARK_MEMORY_GIB
    disk = LOCAL_DISK_GIB if not for_spark else SPARK_DISK_GIB
    return [Check.ok("processors", str(processors())), _check_memory(memory), _check_disk(disk)]


def check_spark_variables(environ: Mapping[str, str] | None = None) -> list[Check]:
    """Variables left over from another Spark installation, which Spark would use silently."""
    variables = os.environ if environ is None else environ
    checks: list[Check] = []
    spark_home = variables.get("SPARK_HOME")
    if spark_home:
        found = f"{spark_home}: this Spark is used instead of the pyspark package"
        checks.append(Check.warning("SPARK_HOME", found, "unset SPARK_HOME"))
    worker = variables.get("PYSPARK_PYTHON")
    if worker and _resolved(worker) != _resolved(sys.executable):
        found = f"{worker}: workers run on it instead of {sys.executable}"
        checks.append(Check.warning("PYSPARK_PYTHON", found, "unset PYSPARK_PYTHON"))
    return checks


def _resolved(program: str) -> str | None:
    # Do not resolve symlinks: an environment's python is a symlink, which is what identifies the environment.
    found = shutil.which(program)
    return os.path.abspath(found) if found else None


def processors() -> int:
    """The number of processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_memory(wanted_gib: float) -> Check:
    available = available_memory()
    if available is None:
        return Check.ok("memory", "unknown")
    found = f"{available / GIB:.1f} GiB available"
    if available < wanted_gib * GIB:
        return Check.warning(
            "memory", found, f"free at least {wanted_gib:g} GiB, or raise the container's limit"
        )
    return Check.ok("memory", found)


def available_memory() -> int | None:
    """Bytes that this process can still allocate: what the system has, or what is left of its container's limit."""
    amounts = [amount for amount in (_system_memory(), _cgroup_memory()) if amount is not None]
    return min(amounts, default=None)


def _system_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _cgroup_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)


def _check_disk(wanted_gib: float) -> Check:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free in {folder}"
    if free < wanted_gib * GIB:
        return Check.warning(
            "disk", found, f"free at least {wanted_gib:g} GiB, or point TMPDIR to a larger disk"
        )
    return Check.ok("disk", found)
