"""Metrics of functions and agents with Flink's names: counters, meters, gauges, histograms and distributions in nested groups.

Plain objects in one process. User code updates them through the runtime or runner context, an engine reads them with
`snapshot()`. They are not durable, and not exact under concurrent updates: an action runs on one thread.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from emberflow.errors import InvalidArgument

_RATE_OVER_S = 60


class Metric:
    """Base of all metrics."""

    __slots__ = ()

    def snapshot(self) -> Any:
        """The current value, as plain data."""
        raise NotImplementedError


class Counter(Metric):
    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def snapshot(self) -> int:
        return self._count


class Meter(Metric):
    """A rate of events, measured over the last minute unless another time is given."""

    __slots__ = ("_clock", "_count", "_over_s", "_second", "_seconds", "_started")

    def __init__(self, clock: Callable[[], float] = time.monotonic, over_s: int = _RATE_OVER_S) -> None:
        if over_s < 1:
            raise InvalidArgument(f"a meter needs a time of at least 1 s, not {over_s} s")
        self._clock = clock
        self._over_s = over_s
        self._count = 0
        self._started = clock()
        self._second = int(self._started)
        # One entry for each second with a mark: (second, count at its start).
        self._seconds: deque[tuple[int, int]] = deque([(self._second, 0)])

    def mark(self, n: int = 1) -> None:
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._seconds.append((second, self._count))
            self._forget(second)
        self._count += n

    def mark_event(self, value: int = 1) -> None:
        """As `mark()`; PyFlink's name."""
        self.mark(value)

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Marks per second."""
        now = self._clock()
        self._forget(int(now))
        seconds = min(max(now - self._started, 1.0), float(self._over_s))
        if self._seconds[0][0] <= int(now) - self._over_s:
            return 0.0
        return (self._count - self._seconds[0][1]) / seconds

    def _forget(self, second: int) -> None:
        while len(self._seconds) > 1 and self._seconds[0][0] <= second - self._over_s:
            self._seconds.popleft()

    def snapshot(self) -> dict[str, Any]:
        return {"count": self._count, "rate": self.get_rate()}


class Gauge(Metric):
    """The current value of something."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = None

    def update(self, value: Any) -> None:
        self._value = value

    def get_value(self) -> Any:
        return self._value

    def snapshot(self) -> Any:
        return self._value


class Histogram(Metric):
    """Count, minimum, maximum and mean of all values; percentiles of the last `window_size`."""

    __slots__ = ("_count", "_largest", "_recent", "_smallest", "_sum")

    def __init__(self, window_size: int = 1_000) -> None:
        if window_size < 1:
            raise InvalidArgument(f"a histogram needs at least 1 value, not a window of {window_size}")
        self._recent: deque[float] = deque(maxlen=window_size)
        self._count = 0
        self._sum = 0.0
        self._smallest = math.inf
        self._largest = -math.inf

    def update(self, value: float) -> None:
        self._recent.append(value)
        self._count += 1
        self._sum += value
        if value < self._smallest:
            self._smallest = value
        if value > self._largest:
            self._largest = value

    def get_count(self) -> int:
        return self._count

    def get_min(self) -> float:
        return self._smallest if self._count else 0.0

    def get_max(self) -> float:
        return self._largest if self._count else 0.0

    def get_mean(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def get_percentile(self, percent: float) -> float:
        """The value that `percent` of the recent values do not exceed; 0.0 if there are none."""
        return _percentile(sorted(self._recent), percent)

    def snapshot(self) -> dict[str, Any]:
        recent = sorted(self._recent)
        stats = {"count": self._count, "min": self.get_min(), "max": self.get_max(), "mean": self.get_mean()}
        return {**stats, **{f"p{percent}": _percentile(recent, percent) for percent in (50, 95, 99)}}


class Distribution(Metric):
    """Count, sum, minimum, maximum and mean of whole numbers."""

    __slots__ = ("_count", "_largest", "_smallest", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0
        self._smallest: int | None = None
        self._largest: int | None = None

    def update(self, value: int) -> None:
        self._count += 1
        self._sum += value
        self._smallest = value if self._smallest is None else min(self._smallest, value)
        self._largest = value if self._largest is None else max(self._largest, value)

    def snapshot(self) -> dict[str, Any]:
        mean = self._sum / self._count if self._count else 0.0
        return {
            "count": self._count,
            "sum": self._sum,
            "min": self._smallest or 0,
            "max": self._largest or 0,
            "mean": mean,
        }


class CallableGauge(Metric):
    """The value that a function returns when it is asked."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        return self._read()

    def snapshot(self) -> Any:
        return self._read()


def _percentile(ordered: list[float], percent: float) -> float:
    if not 0 <= percent <= 100:
        raise InvalidArgument(f"percentiles are between 0 and 100, not {percent}")
    if not ordered:
        return 0.0
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """A scope of metrics; the same name always returns the same metric."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._groups: dict[tuple[str, str | None], MetricGroup] = {}
        self._metrics: dict[str, Metric] = {}

    def get_sub_group(self, name: str, value: str | None = None) -> MetricGroup:
        """The group `name`, or the group of the pair `name=value` (a model, a tool)."""
        group = self._groups.get((name, value))
        if group is None:
            group = self._groups[name, value] = MetricGroup(name if value is None else f"{name}.{value}")
        return group

    def get_counter(self, name: str) -> Counter:
        return self._metric(name, Counter, Counter)

    def get_meter(self, name: str) -> Meter:
        return self._metric(name, Meter, Meter)

    def get_gauge(self, name: str) -> Gauge:
        return self._metric(name, Gauge, Gauge)

    def get_histogram(self, name: str, window_size: int = 1_000) -> Histogram:
        return self._metric(name, Histogram, lambda: Histogram(window_size))

    # PyFlink's names

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """As `get_sub_group()`."""
        return self.get_sub_group(name, extra)

    def counter(self, name: str) -> Counter:
        """As `get_counter()`."""
        return self.get_counter(name)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """A value that `obj()` returns whenever metrics are read."""
        if not callable(obj):
            raise InvalidArgument(
                f"gauge {name!r} needs a function without arguments, not {obj!r}",
                way_out="pass e.g. a lambda",
            )
        self._metric(name, CallableGauge, lambda: CallableGauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = _RATE_OVER_S) -> Meter:
        """A rate of events over the last `time_span_in_seconds`."""
        return self._metric(name, Meter, lambda: Meter(over_s=time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """Count, sum, minimum, maximum and mean of whole numbers."""
        return self._metric(name, Distribution, Distribution)

    def snapshot(self) -> dict[str, Any]:
        """Every metric of this group and its subgroups, by its name relative to this group: `score.model.small.calls`."""
        values: dict[str, Any] = {name: metric.snapshot() for name, metric in list(self._metrics.items())}
        for group in list(self._groups.values()):
            for name, value in group.snapshot().items():
                values[f"{group.name}.{name}"] = value
        return values

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
        if not isinstance(metric, kind):
            raise InvalidArgument(
                f"metric {name!r} of group {self.name!r} is a {type(metric).__name__}, not a {kind.__name__}",
                way_out="give one of them another name",
            )
        return metric
