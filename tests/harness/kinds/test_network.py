"""Connections over the loopback, and RDMA by a program that answers like ib_write_bw."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ...bench import Bench
from ...processes import write_program
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_outcome

SHORT = {"connections": 3}


def tried(toy: Bench, path: str = "", devices: int = 2, kind: str = "network", **given: Any) -> Any:
    """Return the record of a run on devices of one node; ``path``: PATH of programs."""
    options: dict[str, Any] = {**WITHOUT_FRAMEWORK, "kind": kind, "devices_per_node": devices}
    settings = {**(SHORT if kind == "network" else {}), "loopback": "yes", **given}
    variables = {"PATH": path} if path else {}
    return toy.run("", **options, parameters=settings, variables=variables).record


def test_the_figure_is_the_median_connection(toy: Bench) -> None:
    record = tried(toy)
    assert_outcome(record, "ok")
    seconds = record["ranks"][0]["network"]["connect_seconds"]
    assert len(seconds) == 3
    assert record["metrics"]["connect_time"]["value"] == 1e6 * np.median(seconds)


def program(folder: Path, client: str) -> str:
    """Return PATH with a double of ib_write_bw. ``client``: code of its client."""
    script = f"""#!/bin/sh
case "$*" in
  *"--report_gbits") exec sleep 1;; # the server
esac
{client}
"""
    place = write_program(folder / "bin" / "ib_write_bw", script).parent
    return f"{place}:{os.environ['PATH']}"


def test_a_program_that_fails_is_quoted(toy: Bench, tmp_path: Path) -> None:
    path = program(tmp_path, "echo 'Unable to find it'; exit 1")
    record = tried(toy, path, kind="rdma")
    assert_outcome(record, "failed", "ib_write_bw failed: Unable to find it")


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
    assert_outcome(record, "unsupported", reason)


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
    (tmp_path / "said").write_text(TABLE)
    path = program(tmp_path, f"cat {tmp_path}/said")
    record = tried(toy, path, kind="rdma")
    assert_outcome(record, "ok")
    values = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert values == pytest.approx({"mean_bandwidth": 24.6, "peak_bandwidth": 24.69})
