"""Gradient accumulation in every framework that has it: the mean is that of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from .comparing import beyond
from .fork_server import ForkServer, ForkServers, served
from .models import EMBEDDING

COMPILERS = {
    "pytorch": ["none"],
    "jax": ["jit"],
    "tensorflow": ["none"],
    "mindspore": ["none", "jit"],
    "paddle": ["none", "to_static"],
    "mxnet": ["none", "hybridize"],
}


run = served(*COMPILERS)


def test_the_mean_over_micro_steps_is_that_of_the_reference(
    run: ForkServer, references: dict[str, Path]
) -> None:
    """Fail if the mean over micro-steps, its loss, or an update with it differs from the
    reference."""
    folder, compilers = str(references[EMBEDDING]), COMPILERS[run.framework]
    (actual,) = run("accumulation.compare_mean", folder=folder, compilers=compilers)
    assert not beyond(actual["errors"])
    for compiler in compilers:
        quantities = {error["quantity"] for error in actual["errors"][compiler][1]}
        assert {"gradients", "outputs", "loss", "two updates"} <= quantities


@pytest.mark.parametrize("framework", COMPILERS)
def test_gradients_go_to_the_other_rank_once(framework: str, fork_servers: ForkServers) -> None:
    """Fail if ranks differ after a step of several micro-steps, or PyTorch, which adds up the same
    without `no_sync`, sends gradients more than once."""
    run, compiler = fork_servers(framework), COMPILERS[framework][0]
    first, second = run("accumulation.train_together", ranks=2, compiler=compiler)
    assert first == {**second, "sent": 1}
