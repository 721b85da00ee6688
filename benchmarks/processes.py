"""CPU time and memory of this process and its descendants, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_s: float
    """Processor seconds so far; including those of children that have ended."""
    python_mb: float
    java_mb: float


def usage(root: int | None = None) -> Usage:
    cpu_s = python_mb = java_mb = 0.0
    for pid in family(root or os.getpid()):
        try:
            # The name may contain blanks and brackets: count fields from its closing bracket on.
            name, fields = _stat(pid)
            used_mb = memory_mb(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        cpu_s += sum(int(field) for field in fields[11:15]) / TICKS_PER_S
        if name == "java":
            java_mb += used_mb
        else:
            python_mb += used_mb
    return Usage(cpu_s, python_mb, java_mb)


def family(root: int | None = None) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[1][1]), []).append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = [root or os.getpid()]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def process_name(pid: int) -> str:
    try:
        return _stat(pid)[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _stat(pid: int) -> tuple[str, list[str]]:
    text = Path(f"/proc/{pid}/stat").read_text()
    before, _, after = text.rpartition(")")
    return before.partition("(")[2], after.split()


def memory_mb(pid: int) -> float:
    """Proportional set size: pages that forked workers share are counted once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        pass
    return 0.0


def slope_per_minute(samples: list[tuple[float, float]]) -> float:
    """Least-squares slope of (seconds, value) pairs, per minute."""
    count = len(samples)
    mean_x = sum(x for x, _ in samples) / count
    mean_y = sum(y for _, y in samples) / count
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0
