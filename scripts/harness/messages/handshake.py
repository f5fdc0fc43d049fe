"""Mutual authentication of launcher and nodes by the token of the run.

1. The launcher sends a random challenge.
2. The node sends one of its own, and its proof: an HMAC of its role and both challenges.
3. The launcher checks that and sends its own proof.

All messages have a fixed length, and nothing is interpreted before the proof, because anybody can
connect to the port. What follows is neither encrypted nor signed: whoever can change the traffic of
the cluster's network can change that too.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import time

from harness.messages.wire import Closed, Connection

_BYTES = 32  # of a challenge and of a proof
_LAUNCHER, _NODE = b"framebench launcher", b"framebench node"

#: Seconds that the other end may take to prove that it knows the token.
SECONDS = 10.0


def new_token() -> str:
    return secrets.token_hex(_BYTES)


def _proof(token: str, role: bytes, of_launcher: bytes, of_node: bytes) -> bytes:
    return hmac.new(token.encode(), role + of_launcher + of_node, "sha256").digest()


class Caller:
    """Process that connected to the launcher: a node of the run, or a stranger.

    It can be waited for with ``select``, and never blocks."""

    def __init__(self, connected: socket.socket, token: str) -> None:
        """Send the challenge. Raises OSError where the caller is gone."""
        self._socket, self._token = connected, token
        self._end = time.monotonic() + SECONDS
        self._answer = b""
        self._challenge = secrets.token_bytes(_BYTES)
        connected.setblocking(False)
        connected.sendall(self._challenge)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._end

    def proved(self) -> bool:
        """Return whether its proof has arrived. Raises Closed where it is wrong or late, and where
        the caller is gone."""
        try:
            complete = self._answer_is_complete()
            if not complete and self.is_late:
                raise Closed("it took too long")
            if not complete:
                return False
            answer, proof = self._answer[:_BYTES], self._answer[_BYTES:]
            if not hmac.compare_digest(proof, _proof(self._token, _NODE, self._challenge, answer)):
                raise Closed("it does not know the token")
            self._socket.sendall(_proof(self._token, _LAUNCHER, self._challenge, answer))
        except OSError as error:
            raise Closed(str(error)) from None
        return True

    def _answer_is_complete(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            chunk = self._socket.recv(2 * _BYTES - len(self._answer))
            if not chunk:
                raise Closed("the connection ended")
            self._answer += chunk
        return len(self._answer) == 2 * _BYTES

    def connection(self) -> Connection:
        """Return the connection to a caller that has proved its identity."""
        self._socket.setblocking(True)
        return Connection(self._socket)

    def close(self) -> None:
        self._socket.close()


def with_launcher(connected: socket.socket, token: str) -> Connection:
    """Perform the node's side. Raises Closed where the listener does not know the token."""
    connected.settimeout(SECONDS)
    try:
        of_launcher, own = _read(connected), secrets.token_bytes(_BYTES)
        connected.sendall(own + _proof(token, _NODE, of_launcher, own))
        proof = _read(connected)
        connected.settimeout(None)
    except OSError as error:
        raise Closed(str(error)) from None
    if not hmac.compare_digest(proof, _proof(token, _LAUNCHER, of_launcher, own)):
        raise Closed("who listens there is not the launcher of this run")
    return Connection(connected)


def _read(connected: socket.socket) -> bytes:
    received = b""
    while len(received) < _BYTES:
        chunk = connected.recv(_BYTES - len(received))
        if not chunk:
            raise Closed("the connection ended")
        received += chunk
    return received
