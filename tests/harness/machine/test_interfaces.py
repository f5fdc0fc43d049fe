"""Addresses at which a process listens."""

from __future__ import annotations

import socket

from harness.machine import interfaces


def test_a_rank_says_where_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert f"127.0.0.1:{server.getsockname()[1]}" in interfaces.listening()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert f"[::1]:{server.getsockname()[1]}" in interfaces.listening()
