"""One line on the terminal while a job runs: records per second, batch, watermark. Silent if not on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.plan.job_contract import JobMetrics

_INTERVAL_S = 0.5


def format_watermark(watermark: int | None) -> str:
    if watermark is None or watermark == MIN_WATERMARK:
        return "-"
    if watermark == MAX_WATERMARK:
        return "end"
    # Small numbers are test data counted from zero, not timestamps shortly after 1970.
    if watermark < 10**11:
        return str(watermark)
    return datetime.fromtimestamp(watermark / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


class ProgressLine:
    """Redraws itself twice a second until stopped, then clears its line."""

    def __init__(
        self, name: str, metrics: Callable[[], JobMetrics], *, quiet: bool, stream: TextIO | None = None
    ) -> None:
        self._name = name
        self._metrics = metrics
        self._stream = stream or sys.stderr
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if not quiet and self._stream.isatty():
            self._thread = threading.Thread(target=self._run, daemon=True, name="emberflow-progress")
            self._thread.start()

    def _run(self) -> None:
        last_records, last_time, rate = 0, time.monotonic(), 0.0
        while not self._stop.wait(_INTERVAL_S):
            metrics, now = self._metrics(), time.monotonic()
            rate = (metrics.records_in - last_records) / (now - last_time)
            last_records, last_time = metrics.records_in, now
            self._write(self.text(self._name, metrics, rate))
        self._write("")

    @staticmethod
    def text(name: str, metrics: JobMetrics, rate: float) -> str:
        late = f" · {metrics.late_records_dropped:,} late" if metrics.late_records_dropped else ""
        return (
            f"{name} · {metrics.records_in:,} in · {metrics.records_out:,} out{late} · {rate:,.0f} records/s"
            f" · batch {metrics.batches} · watermark {format_watermark(metrics.watermark)}"
        )

    def _write(self, text: str) -> None:
        self._stream.write("\r\x1b[2K" + text)
        self._stream.flush()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
