"""MindSpore's own: which code oneDNN runs for its convolutions, what graphs are, and how ranks
leave."""

from __future__ import annotations

import pytest

from .fork_server import ForkServer, served

run = served("mindspore")


def test_no_convolution_runs_in_the_reference_code_of_onednn(run: ForkServer) -> None:
    (found,) = run("mindspore.convolve")
    assert found["kernels"]
    assert not [kernel for kernel in found["kernels"] if "ref:any" in kernel]


def test_nothing_of_a_graph_is_left_to_python(run: ForkServer) -> None:
    for compiler in ("jit", "none"):
        (found,) = run("mindspore.dispatch", compiler=compiler)
        assert bool(found["names"]) == (compiler == "none")


def test_no_rank_leaves_before_all_others_do(run: ForkServer) -> None:
    """Fail if the rank with the scheduler leaves ranks behind, which end without it."""
    first, last = run("mindspore.leave", ranks=2)
    assert first["begun"] < last["begun"] <= first["left"]


def test_a_graph_learns_of_each_batch_as_operations_do(run: ForkServer) -> None:
    (found,) = run("mindspore.feed")
    assert len(set(found["values"]["none"])) == 3
    assert found["values"]["jit"] == pytest.approx(found["values"]["none"], rel=1e-4)
    assert found["graphs"] == [None] * 3 + [1] * 3
