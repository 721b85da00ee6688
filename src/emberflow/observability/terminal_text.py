"""Text that is safe and of known width on a terminal, optionally with colours."""

from __future__ import annotations

import unicodedata
from enum import Enum


class Color(Enum):
    RED = "31"
    CYAN = "36"
    DIM = "2"
    BOLD = "1"


def paint(text: str, color: Color, *, enabled: bool) -> str:
    return f"\x1b[{color.value}m{text}\x1b[0m" if enabled and text else text


def width_of(text: str) -> int:
    """The number of columns of a clean string: wide characters take two, combining characters none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """The string in at most `width` columns, with `…` where it was truncated."""
    if width_of(text) <= width:
        return text
    if width < 1:
        return ""
    kept: list[str] = []
    room = width - 1
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def pad(text: str, width: int) -> str:
    """The string padded to exactly `width` columns."""
    shown = fit(text, width)
    return shown + " " * (width - width_of(shown))
