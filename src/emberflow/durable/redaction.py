"""Masks the passwords and keys in addresses of stores, both where addresses are shown and in error messages."""

from __future__ import annotations

import re
from urllib.parse import unquote

_USER_INFO = re.compile(r"^[a-z][a-z0-9+.-]*://(?P<user_info>.*)@", re.IGNORECASE | re.DOTALL)
_SECRET_SETTINGS = re.compile(
    r"(?:password|passwd|secret[a-z_]*|[a-z_]*token|access_key|account_key)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[@/:?#&=\s]")
_HIDDEN = "***"
# Shorter fragments of a password reveal nothing, and masking them would garble the whole message.
_SHORTEST_PIECE = 3


def secrets_of(address: str) -> list[str]:
    """Everything in an address that might be a password or a fragment of one, longest first.

    A password that was not quoted for a URI (`p@ss/word`) is split at the wrong places when the URI is parsed, and
    appears in errors as a host or a port: so its fragments count as well.
    """
    found: set[str] = set()
    user_info = _USER_INFO.match(address)
    if user_info and ":" in user_info["user_info"]:
        found.add(user_info["user_info"].partition(":")[2])
    found.update(setting.strip("'") for setting in _SECRET_SETTINGS.findall(address))
    for secret in list(found):
        found.add(unquote(secret))
        found.update(piece for piece in _SEPARATORS.split(secret) if len(piece) >= _SHORTEST_PIECE)
    return sorted(filter(None, found), key=len, reverse=True)


def redacted(text: str, address: str) -> str:
    """An error message without the secrets of the address it is about."""
    for secret in secrets_of(address):
        text = text.replace(secret, _HIDDEN)
    return text


def shown(address: str) -> str:
    """The address without password and settings, for messages."""
    scheme, found, rest = address.partition("://")
    if not found:
        return redacted(address, address)
    user_info, at, place = rest.rpartition("@")
    # User information without a password may be the name of a container.
    before = "" if ":" in user_info else user_info + at
    return f"{scheme}://{before}{place.partition('?')[0]}"
