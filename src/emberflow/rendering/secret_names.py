"""Decides what must not be stored or displayed: values whose names look like secrets, also inside strings, and secrets whose
values are known.

Called by the event log for every name of every event. A secret whose value is not known is not recognized in a field called
`note`.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any, cast

from emberflow.rendering.plain_text import clean

MASK = "***"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = frozenset(
    {
        "password",
        "passwords",
        "passwd",
        "pwd",
        "passphrase",
        "secret",
        "secrets",
        "authorization",
        "credential",
    }
    | {"credentials", "apikey", "apikeys"}
)
_TOKEN = frozenset({"token", "tokens"})
_BEFORE_KEY = frozenset({"api", "access", "private", "signing", "encryption"})
_LONGEST_NAME = 128


class Secrecy(Enum):
    OPEN = 0
    TOKEN = 1
    """Masked unless it is a number: `max_tokens` and `prompt_tokens` are useful to readers of a log."""
    SECRET = 2


@functools.lru_cache(maxsize=4096)
def _secrecy(name: str) -> Secrecy:
    words = [word.lower() for word in _WORDS.findall(name)]
    if not _ALWAYS.isdisjoint(words):
        return Secrecy.SECRET
    for before, word in itertools.pairwise(words):
        if word in ("key", "keys") and before in _BEFORE_KEY:
            return Secrecy.SECRET
    return Secrecy.OPEN if _TOKEN.isdisjoint(words) else Secrecy.TOKEN


def is_hidden(name: str, value: Any) -> bool:
    """Whether the value of this name is written as `***`; an absent value is not."""
    secrecy = _secrecy(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME])
    if secrecy is Secrecy.OPEN or value is None:
        return False
    return secrecy is Secrecy.SECRET or not _is_count(value)


def _is_count(value: Any) -> bool:
    values: list[Any] = list(cast("dict[Any, Any]", value).values()) if type(value) is dict else [value]
    return all(type(item) in (int, float, bool) for item in values)


def shown_forms(secrets: Collection[str]) -> tuple[str, ...]:
    """How these values may appear in a text: as they are, on one line as in errors, escaped as in a repr. The longest first:
    one may be part of another."""
    forms: set[str] = set()
    # A copy: another thread may add to the set meanwhile.
    for secret in tuple(secrets):
        forms.add(secret)
        if not secret.isprintable() or any(sign in secret for sign in ("\\", "'", "  ")):
            forms |= {clean(" ".join(secret.split())), repr(secret)[1:-1]}
    forms.discard("")
    return tuple(sorted(forms, key=len, reverse=True))


def without_values(text: str, forms: Iterable[str]) -> str:
    """The text with `***` in place of these `shown_forms`."""
    for form in forms:
        text = text.replace(form, MASK)
    return text


# Checked before the pattern, which is slow.
_HINTS = ("key", "pass", "pwd", "secret", "authorization", "credential", "token")
_ASSIGNMENT = re.compile(
    r"""
    (?P<name> (?: (?:api|access|private|signing|encryption)[_-]?keys? | password | passwd | pwd | passphrase
                | secret | authorization | credential | (?P<token>token) ) [\w-]{0,40} )
    (?P<sign> \\{0,8}["']? \s{0,8} [=:] \s{0,8} )
    (?P<value> "(?:[^"\\]|\\.)*(?:"|$) | '(?:[^'\\]|\\.)*(?:'|$) | \\+["'][^"']*(?:["']|$)
             | [\[({][^\])}]*(?:[\])}]|$) | (?:(?:bearer|basic)\s+)? [^\s,;)}\]"']+ )
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ABSENT = ("None", "null")
_NUMBER = re.compile(r"-?[0-9.]+|true|false|null|None", re.IGNORECASE)


def scrub(text: str) -> str:
    """The string with `api_key='…'`, `"password": "…"` and the like masked: for reprs, errors and JSON inside a string."""
    lowered = text.lower()
    if lowered.startswith("bearer "):
        return text[:7] + MASK
    if not any(hint in lowered for hint in _HINTS):
        return text
    return _ASSIGNMENT.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    value = found["value"]
    if value in _ABSENT or (found["token"] and _NUMBER.fullmatch(value)):
        return found[0]
    quote = re.match(r"\\*[\"']", value)
    around = quote[0] if quote else ""
    return f"{found['name']}{found['sign']}{around}{MASK}{around}"
