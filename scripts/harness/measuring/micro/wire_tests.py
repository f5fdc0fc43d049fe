"""Measure the network between two ranks. A control connection announces each measurement as a line
of JSON.

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
#: Seconds to wait for the other rank, beyond the duration of its work.
PATIENCE = 60.0
_LISTENING = "Server listening"


def check_program() -> None:
    """Raise Unsupported where iperf3 is not installed."""
    if shutil.which(PROGRAM) is None:
        raise Unsupported("there is no iperf3 here: install it (Debian: apt-get install iperf3)")


def measure_network(addresses: Sequence[str], parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Measure as the rank of the first of two ``addresses``.

    Returns the seconds of each connection and of each round trip, and iperf3's results of each
    direction. Raises Mismatch where iperf3 fails."""
    local, remote = map(_split, addresses)
    with _ControlConnection(_connected(local[0], remote)) as control:
        results: Dict[str, Any] = {}
        control.say({"connections": parameters["connections"]})
        host, port = remote[0], control.hear()["port"]
        results["connect_seconds"] = [
            _connect_seconds(local[0], (host, port)) for _ in range(parameters["connections"])
        ]
        control.say({"round_trips": parameters["round_trips"]})
        with _connected(local[0], (host, control.hear()["port"])) as connection:
            results["round_trip_seconds"] = _round_trips(connection, parameters["round_trips"])
        for direction, options in DIRECTIONS.items():
            control.say({"iperf3": direction})
            command = [
                PROGRAM, "--client", host, "--port", str(control.hear()["port"]),
                "--bind", local[0], "--json", "--time", f"{max(1, round(parameters['seconds']))}",
                "--parallel", str(parameters["streams"]), *options,
            ]  # fmt: skip
            results[direction] = parse_iperf3(_finished(command, parameters["seconds"] + PATIENCE))
            control.hear()
        control.say({"found": results})
    return results


def serve_measurements(addresses: Sequence[str]) -> Dict[str, Any]:
    """Serve the measurements of the other rank, and return the results that it sends at the end."""
    local = _split(addresses[1])
    with _listening(local[0], local[1]) as server:
        control = _ControlConnection(server.accept()[0])
    with control:
        while True:
            request = control.hear()
            if "found" in request:
                return dict(request["found"])
            if "iperf3" in request:
                with _iperf3_server(local[0]) as (process, port):
                    control.say({"port": port})
                    process.wait(PATIENCE + 3600)
                control.say({"done": request["iperf3"]})
                continue
            with _listening(local[0], 0) as server:
                control.say({"port": server.getsockname()[1]})
                for _ in range(request.get("connections", 1)):
                    with server.accept()[0] as connection:
                        _echo(connection, request.get("round_trips", 0))


def parse_iperf3(text: str) -> Dict[str, Any]:
    """Parse iperf3's JSON: received bytes per second, over all and by interval, and retransmitted
    segments. Raises Mismatch where it failed or nothing arrived."""
    try:
        output = json.loads(text)
        if "error" in output:
            raise Mismatch(f"iperf3 failed: {output['error']}")
        results = {
            "version": output["start"]["version"],
            "bytes_per_second": output["end"]["sum_received"]["bits_per_second"] / 8,
            "interval_bytes_per_second": [
                interval["sum"]["bits_per_second"] / 8 for interval in output["intervals"]
            ],
            "retransmits": output["end"]["sum_sent"].get("retransmits"),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(f"iperf3's output is not a result: {error!r}") from None
    if not results["bytes_per_second"] > 0:
        raise Mismatch("iperf3 has transferred nothing")
    return results


class _ControlConnection:
    """Lines of JSON over a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("r", encoding="utf-8")

    def __enter__(self) -> _ControlConnection:
        return self

    def __exit__(self, *error: Any) -> None:
        self._lines.close()
        self._connection.close()

    def say(self, message: Mapping[str, Any]) -> None:
        self._connection.sendall((json.dumps(message) + "\n").encode())

    def hear(self) -> Dict[str, Any]:
        """Return the next message. Raises Mismatch where the other rank has gone."""
        line = self._lines.readline()
        if not line:
            raise Mismatch("the other rank ended while the network was measured")
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


def _connected(address: str, remote: Tuple[str, int]) -> socket.socket:
    """Connect, retrying until the other listens. Raises Mismatch where it never does."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection(remote, PATIENCE, (address, 0))
        except OSError as error:
            if time.monotonic() > end:
                raise Mismatch(f"no connection to {remote[0]}: {error}") from error
            time.sleep(0.05)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        return connection


def _connect_seconds(address: str, remote: Tuple[str, int]) -> float:
    family = socket.AF_INET6 if ":" in remote[0] else socket.AF_INET
    with socket.socket(family) as connection:
        connection.bind((address, 0))
        start = time.perf_counter()
        connection.connect(remote)
        return time.perf_counter() - start


def _round_trips(connection: socket.socket, count: int) -> Any:
    """Return the seconds of each round trip of a byte, which changes each time. Raises Mismatch
    where another byte comes back."""
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
    """Yield an iperf3 server for a single test, and its port. Raises Mismatch where it does not
    start."""
    with _listening(host, 0) as free:
        port = free.getsockname()[1]
    command = [
        PROGRAM, "--server", "--one-off", "--bind", host, "--port", str(port), "--forceflush",
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    try:
        output = ""
        for line in process.stdout or ():
            output += line
            if _LISTENING in line:
                break
        else:
            raise Mismatch(f"iperf3 does not listen: {' '.join(output.split())}")
        yield process, port
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _finished(command: Sequence[str], seconds: float) -> str:
    try:
        finished = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
            timeout=seconds,
        encoding="utf-8", errors="replace")  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Mismatch(f"iperf3 took more than {seconds:g} s") from None
    return finished.stdout
