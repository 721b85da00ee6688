"""The table on the terminal: measured, the target, the ratio, and the previous run."""

from __future__ import annotations

from typing import Any

HEADINGS = ("benchmark", "measure", "measured", "bar", "ratio", "met", "previous")


def render(entries: dict[str, Any], before: dict[str, Any]) -> str:
    """`entries` and `before` are the `benchmarks` parts of two results."""
    rows = [row for name, entry in entries.items() for row in _rows(name, entry, before.get(name, {}))]
    widths = [max(len(row[column]) for row in [HEADINGS, *rows]) for column in range(len(HEADINGS))]
    lines = [_line(HEADINGS, widths), "  ".join("─" * width for width in widths)]
    for number, row in enumerate(rows):
        if number and row[0]:
            lines.append("")
        lines.append(_line(row, widths))
    return "\n".join(lines)


def _rows(name: str, entry: dict[str, Any], before: dict[str, Any]) -> list[tuple[str, ...]]:
    if "measures" not in entry:
        kind = "skipped" if "skipped" in entry else "failed"
        return [(name, kind, entry.get(kind, "").splitlines()[-1][:70], "", "", "no", "")]
    earlier = {measure["name"]: measure for measure in before.get("measures", [])}
    rows: list[tuple[str, ...]] = []
    for measure in entry["measures"]:
        past = earlier.get(measure["name"])
        ratio = measure.get("ratio")
        rows.append(
            (
                name if not rows else "",
                measure["name"],
                amount(measure["value"], measure["unit"]),
                _bar(measure),
                f"{ratio:.2f}" if ratio is not None else "",
                {True: "yes", False: "NO", None: ""}[measure.get("met")],
                amount(past["value"], past["unit"]) if past else "",
            )
        )
    return rows


def _bar(measure: dict[str, Any]) -> str:
    for direction, sign in (("at_least", "≥"), ("at_most", "≤")):
        value = measure.get("bar", {}).get(direction)
        if value is not None:
            return f"{sign} {amount(value, measure['unit'])}"
    return ""


def amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.2f}"
    return f"{number}{unit}" if unit in ("×", "%") else f"{number} {unit}".rstrip()


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    # Names to the left, figures to the right.
    parts = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()
