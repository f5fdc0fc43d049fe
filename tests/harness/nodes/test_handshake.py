"""Launcher and node prove their identities to each other, and reveal nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from harness.messages import handshake, wire
from harness.nodes import agent

TOKEN = handshake.new_token()
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Yield the launcher's end of a connection and the node's."""
    launcher, node = socket.socketpair()
    with launcher, node:
        yield launcher, node


@pytest.fixture(autouse=True)
def any_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "Connection", lambda connected: connected)


def launched(connected: socket.socket, token: str) -> None:
    """Run the launcher's side until it has judged."""
    caller = handshake.Caller(connected, token)
    try:
        while not caller.proved():
            pass
    except wire.Closed:
        caller.close()


def test_those_who_know_the_token_find_each_other(pair: Pair) -> None:
    thread = threading.Thread(target=launched, args=(pair[0], TOKEN))
    thread.start()
    assert handshake.with_launcher(pair[1], TOKEN) is pair[1]  # type: ignore[comparison-overlap]
    thread.join()


def test_a_node_without_the_token_is_hung_up_on(pair: Pair) -> None:
    thread = threading.Thread(target=launched, args=(pair[0], TOKEN))
    thread.start()
    with pytest.raises(wire.Closed, match="connection ended"):
        handshake.with_launcher(pair[1], "guess")
    thread.join()


def test_who_says_nothing_or_too_little_is_late(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "SECONDS", 600)
    caller = handshake.Caller(pair[0], TOKEN)
    pair[1].sendall(b"x" * 63)
    assert (caller.proved(), caller.is_late) == (False, False)
    monkeypatch.setattr(handshake, "SECONDS", -1)
    caller = handshake.Caller(pair[0], TOKEN)
    pair[1].sendall(b"x" * 63)
    assert caller.is_late
    with pytest.raises(wire.Closed, match="too long"):
        caller.proved()


def test_no_more_is_read_of_a_stranger_than_a_proof_has(pair: Pair) -> None:
    caller = handshake.Caller(pair[0], TOKEN)
    pair[1].sendall(b"[" * 1000)
    with pytest.raises(wire.Closed, match="does not know the token"):
        caller.proved()
    assert len(pair[0].recv(2000)) == 1000 - 64


@pytest.mark.parametrize("reflects", [True, False])
def test_a_node_tells_an_impostor_nothing(reflects: bool) -> None:
    """Fail if a node reveals anything to an impostor, who may send the node's own proof back."""
    heard = []

    def pretend(listener: socket.socket) -> None:
        connected, _ = listener.accept()
        with connected:
            connected.sendall(b"c" * 32)
            said = connected.recv(64, socket.MSG_WAITALL)
            connected.sendall(said[32:] if reflects else b"p" * 32)
            heard.append(said + connected.recv(2**16))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        impostors = [threading.Thread(target=pretend, args=(listener,)) for _ in range(3)]
        for each in impostors:
            each.start()
        with pytest.raises(wire.Closed, match="not the launcher of this run"):
            agent.call([f"127.0.0.1:{listener.getsockname()[1]}"], TOKEN)
        for each in impostors:
            each.join()
    assert [len(said) for said in heard] == [64] * 3
    assert len(set(heard)) == 3, "what one heard could be said to the launcher again"
    assert not any(TOKEN.encode() in said or bytes.fromhex(TOKEN) in said for said in heard)
