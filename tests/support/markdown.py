"""What the tests see of a Markdown file: its Python blocks with their output, its links, its shell lines.

A block is independent unless an HTML comment on the line before it says otherwise:

    <!-- snippet: continues -->          it continues in the namespace of the block before it
    <!-- snippet: both -->               it runs on `local` and on `spark`
    <!-- snippet: spark -->              it runs on `spark` only
    <!-- snippet: skip, a reason -->     it is not run

A ```text block right after a Python block is the expected output of that block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_DIRECTIVE = re.compile(r"<!-- snippet: (\w+)(?:, (.+?))? -->")
_FENCE = re.compile(r"```(\w*)\s*$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"#+ (.+)")
KINDS = ("alone", "continues", "both", "spark", "skip")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its language, its text, and the line at which its text starts."""

    language: str
    text: str
    line: int
    directive: str = "alone"
    reason: str = ""
    output: str | None = None
    """The text of a ```text block right after it."""


def documents() -> list[Path]:
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def fences(path: Path) -> list[Fence]:
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[tuple[Fence, int, int]] = []
    number = 0
    while number < len(lines):
        opening = _FENCE.fullmatch(lines[number])
        if opening is None:
            number += 1
            continue
        end = next(index for index in range(number + 1, len(lines)) if lines[index].strip() == "```")
        directive, reason = _directive(path, lines, number)
        text = "\n".join(lines[number + 1 : end]) + "\n"
        found.append((Fence(opening.group(1), text, number + 2, directive, reason), number, end))
        number = end + 1
    return [_with_output(found, index, lines) for index in range(len(found))]


def _directive(path: Path, lines: list[str], number: int) -> tuple[str, str]:
    match = _DIRECTIVE.fullmatch(lines[number - 1].strip()) if number else None
    if match is None:
        return "alone", ""
    assert match.group(1) in KINDS, f"{name_of(path)}:{number} has an unknown directive {match.group(1)}"
    return match.group(1), match.group(2) or ""


def _with_output(found: list[tuple[Fence, int, int]], index: int, lines: list[str]) -> Fence:
    fence, _, end = found[index]
    if index + 1 == len(found):
        return fence
    following, begins, _ = found[index + 1]
    if following.language != "text" or any(line.strip() for line in lines[end + 1 : begins]):
        return fence
    return Fence(fence.language, fence.text, fence.line, fence.directive, fence.reason, following.text)


def links(path: Path) -> list[str]:
    return _LINK.findall(_without_fences(path))


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    titles = [
        match.group(1) for line in _without_fences(path).splitlines() if (match := _HEADING.match(line))
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def _without_fences(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


Chain = tuple[Fence, ...]
"""Blocks that share one namespace."""


def chains(path: Path) -> list[Chain]:
    found: list[list[Fence]] = []
    for fence in fences(path):
        if fence.language != "python":
            continue
        if fence.directive == "continues":
            assert found, f"{name_of(path)}:{fence.line} continues nothing"
            found[-1].append(fence)
        else:
            found.append([fence])
    return [tuple(chain) for chain in found]
