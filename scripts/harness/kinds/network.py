"""Network between two nodes, below any framework: the time of a TCP connection, which is a round
trip.

Rank 0 connects and rank 1 answers, each only at its own address."""

from __future__ import annotations

import shutil
import socket
import statistics
import time
from typing import Any, Callable, Dict, Mapping, Tuple

from harness.adapter import Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of
from harness.measuring.blocks import elapsed
from harness.measuring.checks import check_cores

#: Seconds to wait for the other rank, beyond the duration of its work, and between two attempts.
PATIENCE, _AGAIN = 60.0, 0.05
Address = Tuple[str, int]
LOOPBACK = Parameter(
    "loopback", one_of("no", "yes"), "",
    "whether to measure between two devices of one node, without a network", "no",
)  # fmt: skip


class Network(Kind):
    """Network of two nodes: median microseconds of a connection."""

    needs = None
    parameters = (
        Parameter("connections", at_least(1), "", "connections that are opened and closed", 10),
        LOOPBACK,
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        def connect_time(rank: Mapping[str, Any]) -> float:
            return 1e6 * float(statistics.median(rank["network"]["connect_seconds"]))

        return {"connect_time": Metric("us", "lower", "first", connect_time)}

    def measure(self, context: Context) -> None:
        require_two_nodes(context)
        between_nodes(context, "network", ask, answer)


def require_two_nodes(context: Context) -> None:
    """Raise Unsupported without two ranks, or if no network between them can be measured."""
    case = context.workload.case
    if case.devices != 2:
        raise Unsupported("this benchmark needs two ranks: set nodes: 2, devices_per_node: 1")
    if case.nodes == 1 and context.workload.parameters["loopback"] == "no":
        raise Unsupported(
            "one node has no network between its devices; loopback: yes measures within the node"
        )


def require_program(name: str, package: str) -> None:
    """Raise Unsupported where the program of a Debian ``package`` is missing."""
    if shutil.which(name) is None:
        raise Unsupported(
            f"there is no {name} here: install it (Debian: apt-get install {package})"
        )


def between_nodes(
    context: Context,
    name: str,
    ask: Callable[[str, Address, Mapping[str, Any]], Any],
    answer: Callable[[Address, Mapping[str, Any]], None],
) -> None:
    """Run ``ask`` on rank 0 and ``answer`` on rank 1. Rank 0 reports the result as ``name``. Both
    get the address at which rank 1 listens; rank 0 also gets its own."""
    fields, here, parameters = context.fields, context.rank_context, context.workload.parameters
    context.report.enter("timed window")
    hosts = [address.rpartition(":") for address in here.addresses]
    (local, _), remote = ((host, int(port)) for host, _, port in hosts)
    start = time.perf_counter()
    if here.rank == 0:
        fields[name] = ask(local, remote, parameters)
    else:
        answer(remote, parameters)
    fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
    fields["cores"] = check_cores(context.cores)


def ask(local: str, remote: Address, parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the seconds of each connection."""

    def connect_seconds() -> float:
        with socket.socket() as connection:
            connection.bind((local, 0))
            return elapsed(lambda: connection.connect(remote))

    return {"connect_seconds": [retried(connect_seconds) for _ in range(parameters["connections"])]}


def answer(own: Address, parameters: Mapping[str, Any]) -> None:
    """Accept the connections of the other rank."""
    with socket.create_server(own) as server:
        server.settimeout(PATIENCE)
        for _ in range(parameters["connections"]):
            server.accept()[0].close()


def retried(work: Callable[[], Any]) -> Any:
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
