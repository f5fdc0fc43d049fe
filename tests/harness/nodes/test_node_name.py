"""A run requested on one node runs on that node, or not at all."""

from __future__ import annotations

import socket

from ...bench import Bench


def test_a_run_on_another_node_than_was_asked_for_has_failed(toy: Bench) -> None:
    here = socket.gethostname()
    record = toy.run(node=f"not-{here}").record
    assert record["status"] == "failed"
    assert record["reason"] == f"is on node {here}, not on not-{here}, which was asked for"
    assert record["settings"]["node"] == f"not-{here}"


def test_a_run_says_which_node_it_was_asked_for(toy: Bench) -> None:
    record = toy.run(node=socket.gethostname(), variant="any").record
    assert record["status"] == "ok", record["reason"]
    assert record["settings"]["node"] == record["ranks"][0]["host"]
