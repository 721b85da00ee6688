"""Small charts as inline SVG: lines, bars, stacked bars. No scripts; colours come from the page's style sheet.

Sized for a card about 480 units wide, so that text stays readable when a phone scales it down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 480, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 12, 34

Points = Sequence[tuple[float, float]]
Format = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """`color` is one of the style sheet's numbers, 1 to 6."""

    label: str
    color: int
    points: Points
    filled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    low: float
    high: float
    start: float
    """Pixel of `low`."""
    end: float
    step: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1) * (self.end - self.start)

    def ticks(self) -> list[float]:
        first = ceil(self.low / self.step - 1e-9)
        last = floor(self.high / self.step + 1e-9)
        return [index * self.step for index in range(first, last + 1)]


def nice_step(span: float, count: int) -> float:
    """1, 2 or 5 times a power of ten, so that about `count` ticks fit."""
    rough = span / max(count, 1) or 1.0
    power = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def y_axis(top: float) -> Axis:
    step = nice_step(top or 1.0, 4)
    return Axis(
        low=0, high=ceil((top or 1.0) / step - 1e-9) * step, start=HEIGHT - BOTTOM, end=TOP, step=step
    )


def x_axis(low: float, high: float) -> Axis:
    return Axis(low=low, high=high, start=LEFT, end=WIDTH - RIGHT, step=nice_step((high - low) or 1.0, 6))


def line_chart(series: Sequence[Series], *, title: str, x_label: str, y_format: Format) -> str:
    """Lines over a common x axis that starts at its lowest value."""
    points = [point for item in series for point in item.points]
    if not points:
        return nothing(title)
    x = x_axis(min(point[0] for point in points), max(point[0] for point in points))
    y = y_axis(max(point[1] for point in points))
    parts = [_grid(y, y_format), *(_x_tick(x.at(tick), f"{tick:g}") for tick in x.ticks()), _x_title(x_label)]
    for item in series:
        path = " ".join(f"{x.at(px):.1f},{y.at(py):.1f}" for px, py in item.points)
        if item.filled and item.points:
            first, last = x.at(item.points[0][0]), x.at(item.points[-1][0])
            parts.append(
                f'<polygon class="area c{item.color}" points="{first:.1f},{y.start} {path} {last:.1f},{y.start}"/>'
            )
        parts.append(f'<polyline class="line c{item.color}" points="{path}"/>')
        parts += [
            f'<circle class="dot c{item.color}" cx="{x.at(px):.1f}" cy="{y.at(py):.1f}" r="5">'
            f"<title>{escape(item.label)}, {px:g} s: {escape(y_format(py))}</title></circle>"
            for px, py in item.points
        ]
    return _svg(title, parts) + legend([(item.label, item.color) for item in series])


def bar_chart(
    bars: Sequence[tuple[float, float, float]], *, title: str, x_label: str, marks: dict[str, float]
) -> str:
    """Adjacent bars (from, to, height), with named vertical marks."""
    if not bars:
        return nothing(title)
    x, y = x_axis(bars[0][0], bars[-1][1]), y_axis(max(height for _, _, height in bars))
    parts = [_grid(y, lambda value: f"{value:,.0f}")]
    parts += [_x_tick(x.at(tick), f"{tick:g}") for tick in x.ticks()] + [_x_title(x_label)]
    for low, high, height in bars:
        parts.append(
            f'<rect class="bar c1" x="{x.at(low) + 0.5:.1f}" y="{y.at(height):.1f}"'
            f' width="{max(x.at(high) - x.at(low) - 1, 0.5):.1f}" height="{y.start - y.at(height):.1f}">'
            f"<title>{low:.3g} to {high:.3g} s: {height:,.0f}</title></rect>"
        )
    for row, (name, value) in enumerate(marks.items()):
        at = min(x.at(value), WIDTH - RIGHT)
        anchor = "end" if at > WIDTH - 110 else "start"
        parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{y.start}"/>')
        parts.append(
            f'<text class="marked" x="{at + (-4 if anchor == "end" else 4):.1f}" y="{TOP + 10 + 14 * row}"'
            f' text-anchor="{anchor}">{escape(name)}</text>'
        )
    return _svg(title, parts)


def stacked_bars(
    columns: dict[str, dict[str, float]],
    colors: dict[str, int],
    *,
    title: str,
    x_label: str,
    y_format: Format,
) -> str:
    """One column per name, its parts stacked in the order of `colors`."""
    if not columns:
        return nothing(title)
    y = y_axis(max(sum(parts.values()) for parts in columns.values()))
    slot = (WIDTH - RIGHT - LEFT) / len(columns)
    every = max(1, ceil(len(columns) / 10))
    drawn = [_grid(y, y_format), _x_title(x_label)]
    for number, (name, parts) in enumerate(columns.items()):
        left = LEFT + number * slot + slot * 0.1
        if number % every == 0:
            drawn.append(_x_tick(left + slot * 0.4, name))
        base = 0.0
        for part, color in colors.items():
            amount = parts.get(part, 0.0)
            top = y.at(base + amount)
            drawn.append(
                f'<rect class="bar c{color}" x="{left:.1f}" y="{top:.1f}" width="{slot * 0.8:.1f}"'
                f' height="{max(y.at(base) - top - 0.5, 0):.1f}">'
                f"<title>{escape(name)} {escape(part)}: {escape(y_format(amount))}</title></rect>"
            )
            base += amount
    return _svg(title, drawn) + legend(list(colors.items()))


def legend(entries: Sequence[tuple[str, int]]) -> str:
    items = "".join(f'<li><span class="key k{color}"></span>{escape(label)}</li>' for label, color in entries)
    return f'<ul class="legend">{items}</ul>'


def nothing(title: str) -> str:
    return f'<p class="empty">{escape(title)}: there is nothing to show.</p>'


def _svg(title: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">{"".join(parts)}</svg>'


def _grid(y: Axis, y_format: Format) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y.at(tick) + 4:.1f}" text-anchor="end">{escape(y_format(tick))}</text>'
        for tick in y.ticks()
    )


def _x_tick(at: float, text: str) -> str:
    return f'<text class="tick" x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(text)}</text>'


def _x_title(text: str) -> str:
    return f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{escape(text)}</text>'
