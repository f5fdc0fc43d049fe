"""Tests of MindSpore alone: the code that oneDNN runs for its convolutions, the content of graphs,
and the end of ranks."""

from __future__ import annotations

import pytest

from .fork_server import ForkServer, served

run = served("mindspore")


def test_no_convolution_runs_in_the_reference_code_of_onednn(run: ForkServer) -> None:
    (actual,) = run("mindspore.convolve")
    assert actual["kernels"]
    assert not [kernel for kernel in actual["kernels"] if "ref:any" in kernel]


def test_nothing_of_a_graph_is_left_to_python(run: ForkServer) -> None:
    for compiler in ("jit", "none"):
        (actual,) = run("mindspore.dispatch", compiler=compiler)
        assert bool(actual["names"]) == (compiler == "none")


def test_no_rank_leaves_before_all_others_do(run: ForkServer) -> None:
    """Fail if the rank with the scheduler leaves ranks behind, which end without it."""
    first, last = run("mindspore.leave", ranks=2)
    assert first["begun"] < last["begun"] <= first["left"]


def test_a_graph_learns_of_each_batch_as_operations_do(run: ForkServer) -> None:
    (actual,) = run("mindspore.feed")
    assert len(set(actual["values"]["none"])) == 3
    assert actual["values"]["jit"] == pytest.approx(actual["values"]["none"], rel=1e-4)
    assert actual["graphs"] == [None] * 3 + [1] * 3
