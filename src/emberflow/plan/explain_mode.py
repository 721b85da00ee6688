"""How `emberflow explain` stops a program before it runs."""

from __future__ import annotations


class Explained(BaseException):
    """Raised by `execute()` under `emberflow explain`: carries the rendered plan."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
