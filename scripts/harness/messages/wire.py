"""Messages between launcher and nodes of a run: JSON, one per line, over one connection."""

from __future__ import annotations

import json
import socket
from typing import Any, Dict, List

Message = Dict[str, Any]
_CHUNK = 2**16


class Closed(Exception):
    """Raised where the other end is gone."""


class Connection:
    """One end of a connection. It can be waited for with ``select``."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A node that loses power sends nothing, so the kernel probes whether it is still there.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, name):
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
        self._rest = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def own_host(self) -> str:
        """Return the address of this end: of the interface that reaches the other end."""
        return str(self._socket.getsockname()[0])

    @property
    def is_within_machine(self) -> bool:
        """Return whether both ends are on one machine."""
        return str(self._socket.getpeername()[0]) == self.own_host

    def send(self, message: Message) -> None:
        """Send a message. Raises Closed."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Closed(str(error)) from None

    def received(self) -> List[Message]:
        """Return the complete messages so far; wait where nothing has arrived.

        Raises Closed where the other end is gone, and ValueError for an invalid message."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except OSError as error:
            raise Closed(str(error)) from None
        if not chunk:
            raise Closed("the connection ended")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [_message(line) for line in lines]

    def first(self, seconds: float) -> Message:
        """Return the other end's first message. Raises Closed, also on a timeout, and ValueError
        for an invalid message."""
        self._socket.settimeout(seconds)
        try:
            messages: List[Message] = []
            while not messages:
                messages = self.received()
            return messages[0]
        finally:
            self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()


def _message(line: bytes) -> Message:
    message = json.loads(line.decode())
    if not isinstance(message, dict):
        raise ValueError("no message")
    return message
