"""Parses the description of a tool and of its parameters from a docstring in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns|return|yields|raises|examples?|notes?|see also|references|warnings?)\s*:?\s*$",
    re.IGNORECASE,
)
_PARAMETERS = ("args", "arguments", "parameters", "params")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")
_SPHINX = re.compile(r":(param|type|returns?|rtype|raises)\b\s*([^:]*):\s*(.*)")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description without its sections, and the text of each parameter."""
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    said: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, is_numpy, current = "", False, said
    for index, line in enumerate(lines):
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        underlined = len(following) > 2 and not following.strip("-")
        title = _SECTION.match(line)
        if title and (underlined or line.rstrip().endswith(":")):
            section, is_numpy, current = title[1].lower(), underlined, []
        elif found := _SPHINX.match(line):
            section, current = "sphinx", [found[3]]
            if found[1] == "param":
                # `:param int count: …` may name the type first.
                parameters[(found[2].split() or [""])[-1]] = current
        elif section in _PARAMETERS and (entry := _entry(line, is_numpy)):
            current = parameters.setdefault(entry[0], [entry[1]])
        elif not (section and not line.strip("-")):
            current.append(line.strip() if section else line)
    return "\n".join(said).strip(), {
        name: " ".join(" ".join(text).split()) for name, text in parameters.items()
    }


def _entry(line: str, is_numpy: bool) -> tuple[str, str] | None:
    """`name: text` (Google), indented once; `name : type` (NumPy), not indented, with its text below."""
    indent = len(line) - len(line.lstrip())
    if is_numpy:
        found = _NUMPY_ENTRY.match(line) if indent == 0 else None
        return (found[1], "") if found else None
    found = _ENTRY.match(line.strip()) if 0 < indent <= 4 else None
    return (found[1], found[2]) if found else None
