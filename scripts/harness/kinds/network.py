"""Network between two nodes, below any framework: TCP connection time, which is a round trip, and
iperf3's bandwidth in both directions.

Rank 0 measures and rank 1 answers, at the same port for one thing after the other. Each listens and
connects only at its own address. iperf3 must be installed (Debian: apt-get install iperf3).
Standard library.
"""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import subprocess
import time
from functools import partial
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, above_zero, at_least, one_of
from harness.measuring.blocks import elapsed
from harness.measuring.checks import check_cores

DIRECTIONS: Dict[str, Tuple[str, ...]] = {"forward": (), "reverse": ("--reverse",)}
#: Seconds to wait for the other rank, beyond the duration of its work, and between two attempts.
PATIENCE, _AGAIN = 60.0, 0.05
#: What iperf3 says until its server is ready.
_NOT_YET = ("Connection refused", "Connection reset", "server is busy")


class Network(Kind):
    """Network of two nodes: GB/s each way, median microseconds of a connection."""

    needs = None
    parameters = (
        Parameter("seconds", above_zero, "s", "how long iperf3 sends in each direction", 5.0),
        Parameter("streams", at_least(1), "", "connections of iperf3 at once", 1),
        Parameter("connections", at_least(1), "", "that are made and closed", 10),
        Parameter(
            "loopback", one_of("no", "yes"), "",
            "whether two devices of one node will do: then it is no network", "no",
        ),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {
            "bandwidth": Metric("GB/s", "higher", "first", partial(_bandwidth, "forward")),
            "reverse_bandwidth": Metric("GB/s", "higher", "first", partial(_bandwidth, "reverse")),
            "connect_time": Metric("us", "lower", "first", _connect_time),
        }

    def measure(self, context: Context) -> None:
        fields, rank_context, case = context.fields, context.rank_context, context.workload.case
        check_ranks(case.nodes, case.devices_per_node, context.workload.parameters["loopback"])
        if shutil.which("iperf3") is None:
            raise Unsupported(
                "there is no iperf3 here: install it (Debian: apt-get install iperf3)"
            )
        context.report.enter("timed window")
        start = time.perf_counter()
        arguments = (rank_context.addresses, context.workload.parameters)
        if rank_context.rank == 0:
            fields["network"] = ask(*arguments)
        else:
            answer(*arguments)
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
        fields["cores"] = check_cores(context.cores)


def _bandwidth(direction: str, rank: Mapping[str, Any]) -> float:
    return float(1e-9 * rank["network"][direction]["bytes_per_second"])


def _connect_time(rank: Mapping[str, Any]) -> float:
    return 1e6 * float(statistics.median(rank["network"]["connect_seconds"]))


def check_ranks(nodes: int, devices_per_node: int, loopback: str) -> None:
    """Raise Unsupported unless there are two ranks on different nodes."""
    if nodes * devices_per_node != 2:
        raise Unsupported("it is measured between two ranks: say nodes: 2, devices_per_node: 1")
    if nodes == 1 and loopback == "no":
        raise Unsupported(
            "one node has no network between its devices; loopback: yes measures what its kernel "
            "does instead"
        )


def ask(addresses: Sequence[str], parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Measure as the rank of the first of two ``addresses``.

    Returns the seconds of each connection, and iperf3's results of each direction. Raises Mismatch
    where iperf3 fails."""
    (local, _), remote = map(_split, addresses)

    def connect_seconds() -> float:
        with socket.socket(_family(local)) as connection:
            connection.bind((local, 0))
            return elapsed(lambda: connection.connect(remote))

    first = _retried(connect_seconds)
    seconds = [first, *(connect_seconds() for _ in range(parameters["connections"] - 1))]
    results: Dict[str, Any] = {"connect_seconds": seconds}
    for direction, options in DIRECTIONS.items():
        arguments = [
            "--client", remote[0], "--port", str(remote[1]), "--bind", local, "--json",
            "--time", str(max(1, round(parameters["seconds"]))),
            "--parallel", str(parameters["streams"]), *options,
        ]  # fmt: skip
        text = _retried(partial(_iperf3, parameters["seconds"], *arguments))
        results[direction] = parse_iperf3(text)
    return results


def answer(addresses: Sequence[str], parameters: Mapping[str, Any]) -> None:
    """Serve the measurements of the other rank."""
    host, port = _split(addresses[1])
    with socket.create_server((host, port), family=_family(host)) as server:
        server.settimeout(PATIENCE)
        for _ in range(parameters["connections"]):
            server.accept()[0].close()
    for _ in DIRECTIONS:
        arguments = ("--server", "--one-off", "--bind", host, "--port", str(port))
        _iperf3(parameters["seconds"], *arguments)


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


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _retried(work: Callable[[], Any]) -> Any:
    """Return what ``work`` returns once the other rank listens. Raises Mismatch where it never
    does."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except OSError as error:
            if time.monotonic() > end:
                raise Mismatch(f"no connection: {error}") from error
            time.sleep(_AGAIN)


def _iperf3(seconds: float, *arguments: str) -> str:
    """Return what iperf3 says. Raises ConnectionError until its server listens, Mismatch where it
    takes much longer than ``seconds``."""
    try:
        text = subprocess.run(
            ["iperf3", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=seconds + PATIENCE, encoding="utf-8", errors="replace",
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Mismatch(f"iperf3 took more than {seconds + PATIENCE:g} s") from None
    if any(words in text for words in _NOT_YET):
        raise ConnectionError(" ".join(text.split()))
    return text
