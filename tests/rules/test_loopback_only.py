"""The guard that keeps tests off the network."""

from __future__ import annotations

import socket

import pytest

from tests.support.loopback_only import NetworkRefused

OUTSIDE = "192.0.2.1"
"""An address that is reserved for documentation."""


def test_other_machines_are_unreachable() -> None:
    with pytest.raises(NetworkRefused, match="only loopback is allowed"):
        socket.create_connection((OUTSIDE, 80), timeout=1)
    with pytest.raises(NetworkRefused, match=r"look up 'example\.com'"):
        socket.getaddrinfo("example.com", 80)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, pytest.raises(NetworkRefused):
        udp.sendto(b"x", (OUTSIDE, 80))


def test_this_machine_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.create_connection(("localhost", server.getsockname()[1])).close()
