"""Makes strings from data safe to print: control characters, escape sequences and direction marks are escaped."""

from __future__ import annotations


def clean(text: str) -> str:
    """One line without control characters: data must not control the reader's terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def clean_lines(text: str) -> str:
    """Like `clean`, for several lines."""
    return text if text.isprintable() else "\n".join(map(clean, text.split("\n")))


def _escaped(character: str) -> str:
    if character.isspace():
        return " "
    return (
        character.encode("ascii", "backslashreplace").decode()
        if ord(character) > 127
        else repr(character)[1:-1]
    )
