"""RDMA writes between two nodes, below any framework, by perftest's ib_write_bw.

Rank 1 serves and rank 0 writes. perftest must be installed (Debian: apt-get install perftest)."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from typing import Any, Dict, Mapping

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.kinds import network

PROGRAM = "ib_write_bw"
#: Row of the program's table: bytes, iterations, peak and mean bandwidth in Gb/s, messages per
#: second.
_ROW = re.compile(r"^ *(\d+) +(\d+) +([\d.]+) +([\d.]+) +[\d.]+ *$", re.MULTILINE)
#: Most seconds of a measurement. It counts iterations, because ib_write_bw reports a peak only
#: then.
_SECONDS = 120.0
#: Messages of a client whose server is not ready yet.
_NOT_YET = ("Connection refused", "Connection reset", "Couldn't connect")


class Rdma(Kind):
    """RDMA writes from one node to another: peak and mean GB/s."""

    needs = None
    parameters = (
        Parameter("bytes", at_least(2), "bytes", "of each write", 2**23),
        Parameter("iterations", at_least(5), "", "how many writes", 5000),
        network.LOOPBACK,
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {
            f"{name}_bandwidth": Metric("GB/s", "higher", "first", partial(_bandwidth, name))
            for name in ("mean", "peak")
        }

    def measure(self, context: Context) -> None:
        network.require_two_nodes(context)
        network.require_program(PROGRAM, "perftest")
        network.between_nodes(context, "rdma", ask, answer)


def _bandwidth(name: str, rank: Mapping[str, Any]) -> float:
    return float(rank["rdma"][f"{name}_gigabits_per_second"] / 8)


def ask(local: str, remote: network.Address, parameters: Mapping[str, Any]) -> Dict[str, float]:
    """Return bandwidths as :func:`parse` does; see :func:`network.between_nodes`."""
    return parse(network.retried(partial(_written, remote[1], parameters, remote[0])))


def answer(own: network.Address, parameters: Mapping[str, Any]) -> None:
    """Serve the writes of the other rank."""
    _written(own[1], parameters)


def _written(port: int, parameters: Mapping[str, Any], *server: str) -> str:
    """Return the program's output. Raises ConnectionError until its server listens, TimeoutExpired
    where it takes much longer than _SECONDS."""
    command = [
        PROGRAM, "--port", str(port), "--size", str(parameters["bytes"]),
        "--iters", str(parameters["iterations"]), "--report_gbits", *server,
    ]  # fmt: skip
    text = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=_SECONDS + network.PATIENCE, encoding="utf-8", errors="replace",
    ).stdout  # fmt: skip
    if any(words in text for words in _NOT_YET):
        raise ConnectionError(" ".join(text.split()))
    return text


def parse(text: str) -> Dict[str, float]:
    """Return peak and mean bandwidth in Gb/s from the program's table. Raises Mismatch where there
    is none."""
    row = _ROW.search(text)
    if row is None or not float(row[4]) > 0:
        raise Mismatch(f"{PROGRAM} failed: {' '.join(text.split())[-300:]}")
    return {"peak_gigabits_per_second": float(row[3]), "mean_gigabits_per_second": float(row[4])}
