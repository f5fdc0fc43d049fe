"""Before OneFlow is imported, which joins the ranks by itself."""

from __future__ import annotations

import socket
import time

#: Seconds that a rank waits for rank 0 to listen before OneFlow tries, and reports, by itself.
_SECONDS = 120.0


def wait_for_listener(address: str) -> None:
    """Return when something listens at ``address`` (``host:port``). Where OneFlow finds nobody
    there it tries again only after ten seconds."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.02)
