"""Measure the network between two ranks, which use the same port for one thing after the other: a
server that echoes, then a server of iperf3 for each direction.

Standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from harness.adapter import Mismatch, Unsupported

PROGRAM = "iperf3"
DIRECTIONS = {"forward": (), "reverse": ("--reverse",)}
#: Seconds to wait for the other rank, beyond the duration of its work.
PATIENCE = 60.0
#: Seconds between two attempts to connect, and what iperf3 says until its server is ready.
_AGAIN, _NOT_YET = 0.05, re.compile("Connection re(fused|set)|server is busy")


def check_program() -> None:
    """Raise Unsupported where iperf3 is not installed."""
    if shutil.which(PROGRAM) is None:
        raise Unsupported("there is no iperf3 here: install it (Debian: apt-get install iperf3)")


def measure_network(addresses: Sequence[str], parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Measure as the rank of the first of two ``addresses``.

    Returns the seconds of each connection and of each round trip, and iperf3's results of each
    direction. Raises Mismatch where iperf3 fails."""
    (local, _), remote = map(_split, addresses)
    with _connected(local, remote) as connection:
        round_trips = _round_trips(connection, parameters["round_trips"])
    connections = range(parameters["connections"])
    results: Dict[str, Any] = {
        "connect_seconds": [_connect_seconds(local, remote) for _ in connections],
        "round_trip_seconds": round_trips,
    }
    for direction, options in DIRECTIONS.items():
        command = [
            PROGRAM, "--client", remote[0], "--port", str(remote[1]), "--bind", local, "--json",
            "--time", f"{max(1, round(parameters['seconds']))}",
            "--parallel", str(parameters["streams"]), *options,
        ]  # fmt: skip
        results[direction] = parse_iperf3(_answer(command, parameters["seconds"] + PATIENCE))
    return results


def serve_measurements(addresses: Sequence[str], parameters: Mapping[str, Any]) -> None:
    """Serve the measurements of the other rank. Raises Mismatch where iperf3 does not."""
    host, port = _split(addresses[1])
    with _listening(host, port) as server:
        for _ in range(1 + parameters["connections"]):
            with server.accept()[0] as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for received in iter(lambda: connection.recv(1), b""):
                    connection.sendall(received)
    command = [PROGRAM, "--server", "--one-off", "--bind", host, "--port", str(port)]
    for _ in DIRECTIONS:
        served = _finished(command, parameters["seconds"] + PATIENCE)
        if served.returncode:
            raise Mismatch(f"iperf3 does not serve: {' '.join(served.stdout.split())}")


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
            time.sleep(_AGAIN)
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


def _round_trips(connection: socket.socket, count: int) -> List[float]:
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


def _answer(command: List[str], seconds: float) -> str:
    """Return what iperf3 prints once its server listens."""
    end = time.monotonic() + PATIENCE
    while True:
        text = _finished(command, seconds).stdout
        if not _NOT_YET.search(text) or time.monotonic() > end:
            return text
        time.sleep(_AGAIN)


def _finished(command: List[str], seconds: float) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
            encoding="utf-8", errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Mismatch(f"iperf3 took more than {seconds:g} s") from None
