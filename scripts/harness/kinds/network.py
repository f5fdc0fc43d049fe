"""Network between two nodes, below any framework: TCP connection time, round-trip time of a byte,
and iperf3's bandwidth in both directions.

Rank 0 measures and rank 1 answers; each listens and connects only at its own address. iperf3 must
be installed (Debian: apt-get install iperf3). Standard library.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, Mapping

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, above_zero, at_least, one_of
from harness.measuring.checks import check_cores
from harness.measuring.micro import wire_tests


class Network(Kind):
    """Network of two nodes: GB/s each way, median microseconds of a connection and a round trip."""

    needs = None
    parameters = (
        Parameter("seconds", above_zero, "s", "how long iperf3 sends in each direction", 5.0),
        Parameter("streams", at_least(1), "", "connections of iperf3 at once", 1),
        Parameter("connections", at_least(1), "", "that are made and closed", 10),
        Parameter("round_trips", at_least(1), "", "of a byte", 1000),
        Parameter(
            "loopback", one_of("no", "yes"), "",
            "whether two devices of one node will do: then it is no network", "no",
        ),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        def bandwidth(direction: str) -> Metric:
            return Metric("GB/s", "higher", "first", lambda rank: _bandwidth(rank, direction))

        def microseconds(name: str) -> Metric:
            return Metric("us", "lower", "first", _median(name))

        return {
            "bandwidth": bandwidth("forward"),
            "reverse_bandwidth": bandwidth("reverse"),
            "connect_time": microseconds("connect_seconds"),
            "round_trip_time": microseconds("round_trip_seconds"),
        }

    def measure(self, context: Context) -> None:
        fields, rank_context, case = context.fields, context.rank_context, context.workload.case
        check_ranks(case.nodes, case.devices_per_node, context.workload.parameters["loopback"])
        wire_tests.check_program()
        context.report.enter("timed window")
        start = time.perf_counter()
        arguments = (rank_context.addresses, context.workload.parameters)
        if rank_context.rank == 0:
            fields["network"] = wire_tests.measure_network(*arguments)
        else:
            wire_tests.serve_measurements(*arguments)
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
        fields["cores"] = check_cores(context.cores)


def check_ranks(nodes: int, devices_per_node: int, loopback: str) -> None:
    """Raise Unsupported unless there are two ranks on different nodes."""
    if nodes * devices_per_node != 2:
        raise Unsupported("it is measured between two ranks: say nodes: 2, devices_per_node: 1")
    if nodes == 1 and loopback == "no":
        raise Unsupported(
            "one node has no network between its devices; loopback: yes measures what its kernel "
            "does instead"
        )


def _bandwidth(rank: Mapping[str, Any], direction: str) -> float:
    return float(1e-9 * rank["network"][direction]["bytes_per_second"])


def _median(name: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda rank: 1e6 * float(statistics.median(rank["network"][name]))
