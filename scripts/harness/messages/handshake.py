"""How the launcher and its nodes prove to each other that they know the token of the run.

1. The launcher sends a random challenge.
2. The node sends one of its own, and its proof: an HMAC of its role and both challenges.
3. The launcher checks that and sends its own proof.

All of it has a fixed length, and nothing is interpreted before the proof: whoever reaches the port
can say what he likes. What follows is neither encrypted nor signed: who can change the traffic of
the cluster's network can change that, too.
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

#: How long the other end may take to prove that it knows the token.
_SECONDS = 10.0


def new_token() -> str:
    return secrets.token_hex(_BYTES)


def _proof(token: str, role: bytes, of_launcher: bytes, of_node: bytes) -> bytes:
    return hmac.new(token.encode(), role + of_launcher + of_node, "sha256").digest()


class Caller:
    """Somebody who has called the launcher: a node of the run, or a stranger. It can be waited for
    with ``select``, and never waits itself."""

    def __init__(self, connected: socket.socket, token: str) -> None:
        """Raises OSError where it is gone."""
        self._socket, self._token = connected, token
        self._end = time.monotonic() + _SECONDS
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
        """Whether its proof is there by now. Raises Closed for one that is wrong, where it takes
        too long, and where it is gone."""
        try:
            complete = self._answer_is_complete()
            if not complete and self.is_late:
                raise Closed("it took too long")
            if not complete:
                return False
            own, proof = self._answer[:_BYTES], self._answer[_BYTES:]
            if not hmac.compare_digest(proof, _proof(self._token, _NODE, self._challenge, own)):
                raise Closed("it does not know the token")
            self._socket.sendall(_proof(self._token, _LAUNCHER, self._challenge, own))
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
        """To one that has proved it."""
        self._socket.setblocking(True)
        return Connection(self._socket)

    def close(self) -> None:
        self._socket.close()


def with_launcher(connected: socket.socket, token: str) -> Connection:
    """The node's side. Raises Closed where who listens does not know the token."""
    connected.settimeout(_SECONDS)
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
    found = b""
    while len(found) < _BYTES:
        chunk = connected.recv(_BYTES - len(found))
        if not chunk:
            raise Closed("the connection ended")
        found += chunk
    return found
