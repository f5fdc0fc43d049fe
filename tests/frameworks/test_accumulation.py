"""Gradient accumulation in every framework that has it: mean as in the reference, mistakes
found."""

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


#: Texts of the accumulating function and their replacements, by framework. Those that run
#: operation by operation have it in common.
SCAN = "scan(add, carried, batch)"
ADDED_UP, ONE_ALONE, FIRST_AGAIN = "gradients added up", "one micro-step", "one batch twice"
MISTAKES = {
    ADDED_UP: {
        "jax": ("array / count", "array"),
        "tensorflow": ("gradient / count for", "gradient for"),
    },
    ONE_ALONE: {
        "jax": (SCAN, "scan(add, carried, {n: a[:1] for n, a in batch.items()})"),
        "tensorflow": ("maximum_iterations=count", "maximum_iterations=1"),
    },
    FIRST_AGAIN: {
        "jax": (SCAN, "scan(add, carried, {n: a[:1].repeat(2, 0) for n, a in batch.items()})"),
        "tensorflow": ("array[number]", "array[0]"),
    },
}


def test_mistakes_are_found(run: ForkServer, references: dict[str, Path]) -> None:
    """Fail if a planted mistake is missed by the comparison."""
    (actual,) = run(
        "accumulation.find_mistakes",
        folder=str(references[EMBEDDING]),
        compiler=COMPILERS[run.framework][0],
        mistakes={name: mistakes.get(run.framework, ()) for name, mistakes in MISTAKES.items()},
    )
    assert {mistake for mistake, *_ in beyond(actual["errors"])} == {*MISTAKES}


@pytest.mark.parametrize("framework", COMPILERS)
def test_gradients_go_to_the_other_rank_once(framework: str, fork_servers: ForkServers) -> None:
    """Fail if ranks differ after a step of several micro-steps, or PyTorch, which adds up the same
    without `no_sync`, sends gradients more than once."""
    run, compiler = fork_servers(framework), COMPILERS[framework][0]
    first, second = run("accumulation.train_together", ranks=2, compiler=compiler)
    assert first == {**second, "sent": 1}
