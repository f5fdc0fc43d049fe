"""Network by a real iperf3 over the loopback, and by programs that answer like a broken one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.kinds import network

from ...bench import Bench
from ...debian import install_debian_packages
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_valid

SHORT = {"seconds": 1, "connections": 3}
#: Arguments of a server of RDMA.
RDMA_SERVER = '*"--report_gbits"'


def tried(toy: Bench, path: str = "", devices: int = 2, kind: str = "network", **given: Any) -> Any:
    """Return the record of a run on devices of one node; ``path``: PATH of programs."""
    options: dict[str, Any] = {**WITHOUT_FRAMEWORK, "kind": kind, "devices_per_node": devices}
    settings = {**(SHORT if kind == "network" else {}), "loopback": "yes", **given}
    variables = {"PATH": path} if path else {}
    return toy.run("", **options, parameters=settings, variables=variables).record


@pytest.fixture(scope="module")
def iperf3() -> str:
    program = shutil.which("iperf3")
    if not program:
        why = install_debian_packages("iperf3")
        assert not why, why
        program = shutil.which("iperf3")
    assert program
    return program


def test_the_figures_are_iperf3_s_own_and_medians(toy: Bench, iperf3: str) -> None:
    record = tried(toy)
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    first = record["ranks"][0]["network"]
    assert len(first["connect_seconds"]) == 3
    metrics = {name: metric["value"] for name, metric in record["metrics"].items()}
    for name, direction in (("bandwidth", "forward"), ("reverse_bandwidth", "reverse")):
        assert metrics[name] == pytest.approx(1e-9 * first[direction]["bytes_per_second"])
    assert metrics["connect_time"] == 1e6 * np.median(first["connect_seconds"])


def program(folder: Path, client: str, name: str = "iperf3", server: str = "*--server*") -> str:
    """Return PATH with a double of a program. ``client``: code of its client; ``server``: pattern
    of a server's arguments."""
    place = folder / "bin"
    place.mkdir()
    script = f"""#!/bin/sh
case "$*" in
  {server}) echo 'Server listening on 5201'; exec sleep 1;;
esac
{client}
"""
    (place / name).write_text(script)
    (place / name).chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("kind", "name", "said", "reason", "server"),
    [
        ("network", "iperf3", '{"error": "unable to connect"}', "unable to connect", "*--server*"),
        ("rdma", "ib_write_bw", "Unable to find it", "Unable to find it", RDMA_SERVER),
    ],
)
def test_a_program_that_fails_is_quoted(
    toy: Bench, tmp_path: Path, kind: str, name: str, said: str, reason: str, server: str
) -> None:
    path = program(tmp_path, f"echo '{said}'; exit 1", name, server)
    record = tried(toy, path, kind=kind)
    assert record["status"] == "failed"
    assert f"{name} failed: {reason}" in record["reason"]


def test_what_carried_nothing_is_no_result() -> None:
    said: dict[str, Any] = {
        "start": {"version": "iperf 3.12"},
        "end": {"sum_received": {"bits_per_second": 160.0}},
    }
    read = network.parse_iperf3(json.dumps(said))
    assert read == {"version": "iperf 3.12", "bytes_per_second": 20.0}
    said["end"]["sum_received"]["bits_per_second"] = 0.0
    with pytest.raises(Mismatch, match="iperf3 has transferred nothing"):
        network.parse_iperf3(json.dumps(said))


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        (1, "this benchmark needs two ranks: set nodes: 2, devices_per_node: 1"),
        (2, "one node has no network between its devices; loopback: yes measures"),
    ],
)
def test_one_node_has_no_network_unless_its_loopback_is_asked_for(
    toy: Bench, devices: int, reason: str
) -> None:
    record = tried(toy, devices=devices, loopback="no")
    assert record["status"] == "unsupported"
    assert reason in record["reason"]


# ---- RDMA ----------------------------------------------------------------------------------------

#: What ib_write_bw 6.20 prints with --report_gbits, shortened.
TABLE = """
                    RDMA_Write BW Test
 Number of qps   : 1            Transport type : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8388608    5000             197.52             196.80               0.002933
---------------------------------------------------------------------------------------
"""


def test_rdma_is_what_ib_write_bw_says(toy: Bench, tmp_path: Path) -> None:
    """Fail if peak and mean are swapped or not converted, or the server is asked for the table."""
    (tmp_path / "said").write_text(TABLE)
    client = f"cat {tmp_path}/said"
    path = program(tmp_path, client, "ib_write_bw", server=RDMA_SERVER)
    record = tried(toy, path, kind="rdma")
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    values = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert values == pytest.approx({"mean_bandwidth": 24.6, "peak_bandwidth": 24.69})
