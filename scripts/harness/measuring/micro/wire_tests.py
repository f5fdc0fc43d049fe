"""Two ranks that try the network between them. A connection of theirs, apart from what is measured,
says what comes next: a line of JSON each time.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

from harness.adapter import Mismatch, Unsupported

PROGRAM = "iperf3"
DIRECTIONS = {"forward": (), "reverse": ("--reverse",)}
#: Seconds that one waits for the other, beyond what it has to do.
PATIENCE = 60.0
_LISTENING = "Server listening"


def check_program() -> None:
    """Raises Unsupported where there is no iperf3."""
    if shutil.which(PROGRAM) is None:
        raise Unsupported("there is no iperf3 here: install it (Debian: apt-get install iperf3)")


def ask(addresses: Sequence[str], parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """All that is measured, by the rank of the first of two ``addresses``: the seconds of each
    connection and of each round trip, and what iperf3 says of each direction. Raises Mismatch where
    iperf3 fails."""
    own, other = map(_split, addresses)
    with _Talk(_connected(own[0], other)) as talk:
        found: Dict[str, Any] = {}
        talk.say({"connections": parameters["connections"]})
        host, port = other[0], talk.hear()["port"]
        found["connect_seconds"] = [
            _connect_seconds(own[0], (host, port)) for _ in range(parameters["connections"])
        ]
        talk.say({"round_trips": parameters["round_trips"]})
        with _connected(own[0], (host, talk.hear()["port"])) as connection:
            found["round_trip_seconds"] = _round_trips(connection, parameters["round_trips"])
        for direction, options in DIRECTIONS.items():
            talk.say({"iperf3": direction})
            command = [
                PROGRAM, "--client", host, "--port", str(talk.hear()["port"]), "--bind", own[0],
                "--json", "--time", f"{max(1, round(parameters['seconds']))}",
                "--parallel", str(parameters["streams"]), *options,
            ]  # fmt: skip
            found[direction] = figures(_finished(command, parameters["seconds"] + PATIENCE))
            talk.hear()
        talk.say({"found": found})
    return found


def answer(addresses: Sequence[str]) -> Dict[str, Any]:
    """What the other rank measures, who says so at its end."""
    own = _split(addresses[1])
    with _listening(own[0], own[1]) as server:
        talk = _Talk(server.accept()[0])
    with talk:
        while True:
            asked = talk.hear()
            if "found" in asked:
                return dict(asked["found"])
            if "iperf3" in asked:
                with _iperf3_server(own[0]) as (process, port):
                    talk.say({"port": port})
                    process.wait(PATIENCE + 3600)
                talk.say({"done": asked["iperf3"]})
                continue
            with _listening(own[0], 0) as server:
                talk.say({"port": server.getsockname()[1]})
                for _ in range(asked.get("connections", 1)):
                    with server.accept()[0] as connection:
                        _echo(connection, asked.get("round_trips", 0))


def figures(text: str) -> Dict[str, Any]:
    """Of iperf3's JSON: bytes that arrived each second, over all and in each interval, and how many
    segments were sent a second time. Raises Mismatch where it failed, or nothing arrived."""
    try:
        said = json.loads(text)
        if "error" in said:
            raise Mismatch(f"iperf3 failed: {said['error']}")
        found = {
            "version": said["start"]["version"],
            "bytes_per_second": said["end"]["sum_received"]["bits_per_second"] / 8,
            "interval_bytes_per_second": [
                interval["sum"]["bits_per_second"] / 8 for interval in said["intervals"]
            ],
            "retransmits": said["end"]["sum_sent"].get("retransmits"),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(f"iperf3's answer is no result: {error!r}") from None
    if not found["bytes_per_second"] > 0:
        raise Mismatch("iperf3 has carried nothing at all")
    return found


class _Talk:
    """Lines of JSON over a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("r", encoding="utf-8")

    def __enter__(self) -> _Talk:
        return self

    def __exit__(self, *error: Any) -> None:
        self._lines.close()
        self._connection.close()

    def say(self, what: Mapping[str, Any]) -> None:
        self._connection.sendall((json.dumps(what) + "\n").encode())

    def hear(self) -> Dict[str, Any]:
        """Raises Mismatch where the other has gone."""
        line = self._lines.readline()
        if not line:
            raise Mismatch("the other rank has gone while the network was measured")
        return dict(json.loads(line))


def _split(address: str) -> Tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _listening(host: str, port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(PATIENCE)
    server.bind((host, port))
    server.listen(8)
    return server


def _connected(own: str, other: Tuple[str, int]) -> socket.socket:
    """Tried until the other listens. Raises Mismatch where it never does."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection(other, PATIENCE, (own, 0))
        except OSError as error:
            if time.monotonic() > end:
                raise Mismatch(f"no connection to {other[0]}: {error}") from error
            time.sleep(0.05)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        return connection


def _connect_seconds(own: str, other: Tuple[str, int]) -> float:
    family = socket.AF_INET6 if ":" in other[0] else socket.AF_INET
    with socket.socket(family) as connection:
        connection.bind((own, 0))
        start = time.perf_counter()
        connection.connect(other)
        return time.perf_counter() - start


def _round_trips(connection: socket.socket, count: int) -> Any:
    """Seconds of each; the byte is another one each time. Raises Mismatch where another comes."""
    seconds = []
    for number in range(count):
        sent = bytes([number % 256])
        start = time.perf_counter()
        connection.sendall(sent)
        received = connection.recv(1)
        seconds.append(time.perf_counter() - start)
        if received != sent:
            raise Mismatch(f"byte {number} came back as {received!r}, not {sent!r}")
    return seconds


def _echo(connection: socket.socket, count: int) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(count):
        connection.sendall(connection.recv(1))


@contextlib.contextmanager
def _iperf3_server(host: str) -> Iterator[Tuple[Any, int]]:
    """One that ends behind a single test, when it listens, and its port. Raises Mismatch where it
    does not start."""
    with _listening(host, 0) as free:
        port = free.getsockname()[1]
    command = [
        PROGRAM, "--server", "--one-off", "--bind", host, "--port", str(port), "--forceflush",
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        said = ""
        for line in process.stdout or ():
            said += line
            if _LISTENING in line:
                break
        else:
            raise Mismatch(f"iperf3 does not listen: {' '.join(said.split())}")
        yield process, port
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _finished(command: Sequence[str], seconds: float) -> str:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
            timeout=seconds,
        encoding="utf-8", errors="replace")  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Mismatch(f"iperf3 took more than {seconds:g} s") from None
    return done.stdout
