"""Tests do not connect to other machines: connections and lookups beyond the loopback address fail, with the address.

`tests/conftest.py` enables it for the test process. Processes that tests start are not covered: some of those tests are
about the module path by which they could be reached.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any

_NAMES = {"localhost", "", None}
_CONNECTING = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_LOOKING_UP = {"socket.getaddrinfo", "socket.gethostbyname"}


class NetworkRefused(OSError):
    """Not an assertion: attempts must fail as if there were no network."""


def is_here(host: Any) -> bool:
    """Whether a host name or address is this machine's own."""
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if host in _NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def check(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _CONNECTING:
        address = arguments[1]
        # A path is a socket of this machine.
        if isinstance(address, tuple) and not is_here(address[0]):
            raise NetworkRefused(f"a test tried to connect to {address!r}: only loopback is allowed")
    elif event in _LOOKING_UP and not is_here(arguments[0]) and not _is_own_name(arguments[0]):
        raise NetworkRefused(f"a test tried to look up {arguments[0]!r}: only loopback is allowed")


def _is_own_name(host: Any) -> bool:
    # Spark and Postgres ask for the address of the machine they run on.
    return host == os.uname().nodename


def switch_on() -> None:
    """For the rest of this process: an audit hook cannot be removed."""
    sys.addaudithook(check)
