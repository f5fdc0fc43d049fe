"""Gradient accumulation in every framework that has it: mean as in the reference, mistakes
found."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from harness.adapter import ExecutedMatmul, Mismatch
from harness.measuring.verification.shared_steps import check_micro_steps

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
        assert {"gradients", "outputs", "multiply-adds", "loss", "two updates"} <= quantities
        step, micro_step = actual["counted"][compiler]
        assert step == 2 * micro_step > 0


#: Texts of the accumulating function and their replacements, by framework.
SCAN = "scan(add, carried, batch)"
ADDED_UP, ONE_ALONE, FIRST_AGAIN = "gradients added up", "one micro-step", "one batch twice"
MISTAKES = {
    ADDED_UP: {
        "pytorch": ("loss() / len(losses)", "loss()"),
        "jax": ("array / count", "array"),
        "tensorflow": ("gradient / count for", "gradient for"),
        "paddle": ("loss() / len(losses)", "loss()"),
        "mindspore": ("1.0 / len(batches)", "1.0"),
        "mxnet": ("scaled.backward()", "scaled.backward(2 * nd.ones((1,)))"),
    },
    ONE_ALONE: {
        "pytorch": ("for loss in earlier", "for loss in earlier[:0]"),
        "jax": (SCAN, "scan(add, carried, {n: a[:1] for n, a in batch.items()})"),
        "tensorflow": ("maximum_iterations=count", "maximum_iterations=1"),
        "paddle": ("for loss in earlier", "for loss in earlier[:0]"),
        "mindspore": ("batches[1:]", "batches[:0]"),
        "mxnet": ("in evaluations:", "in evaluations[:1]:"),
    },
    FIRST_AGAIN: {
        "pytorch": ("(loss) for loss in earlier", "(last) for loss in earlier"),
        "jax": (SCAN, "scan(add, carried, {n: a[:1].repeat(2, 0) for n, a in batch.items()})"),
        "tensorflow": ("array[number]", "array[0]"),
        "paddle": ("(loss) for loss in earlier", "(last) for loss in earlier"),
        "mindspore": ("batches[1:]", "batches[:1] * (len(batches) - 1)"),
        "mxnet": ("in evaluations:", "in 2 * evaluations[:1]:"),
    },
}


def test_mistakes_are_found(run: ForkServer, references: dict[str, Path]) -> None:
    """Fail if a planted mistake is missed by the comparison, or a missing micro-step by
    the count."""
    (actual,) = run(
        "accumulation.find_mistakes",
        folder=str(references[EMBEDDING]),
        compiler=COMPILERS[run.framework][0],
        mistakes={name: mistakes[run.framework] for name, mistakes in MISTAKES.items()},
    )
    assert {mistake for mistake, *_ in beyond(actual["errors"])} == {*MISTAKES}
    assert [name for name, reason in actual["counted"].items() if reason] == [ONE_ALONE]


#: Function and replacement that make each micro-step send gradients, by framework. TensorFlow
#: refuses an all-reduce in the body of a loop.
EACH = {
    "pytorch": ("accumulated", "with unsynchronized():", "if True:"),
    "jax": (
        *("accumulated", "micro_batch)\n            return"),
        "micro_batch)\n"
        '            gradients = vary(jax.lax.pmean(gradients, "rank"))\n'
        "            return",
    ),
    "mindspore": (
        *("accumulated", "differentiate(batch, share)\n"),
        "differentiate(batch, share)\n            gradients = average(gradients)\n",
    ),
    "mxnet": (
        *("accumulated", "scaled.backward()\n"),
        "scaled.backward()\n            sum_over_ranks and sum_over_ranks(gradients)\n",
    ),
}


@pytest.mark.parametrize("framework", ["pytorch", "jax", "tensorflow", "mindspore", "mxnet"])
def test_gradients_go_to_the_other_rank_once(framework: str, fork_servers: ForkServers) -> None:
    """Fail if gradients are sent more than once, or if sending them per micro-step goes
    unnoticed."""
    each, compiler = EACH.get(framework), COMPILERS[framework][0]
    run = functools.partial(
        fork_servers(framework), "accumulation.count_messages", ranks=2, compiler=compiler
    )
    right, wrong = run(mistake=None), run(mistake=each) if each else []
    assert right[0]["checksum"] == right[1]["checksum"]
    assert [entry["sent"] for entry in right] == [entry["messages"] for entry in right]
    assert all(entry["messages"] > 0 for entry in right)
    assert all(entry["sent"] > entry["messages"] for entry in wrong), "what a run is refused for"
    if framework == "pytorch":  # PyTorch adds up the same, only more often
        assert [entry["sent"] for entry in wrong] == [3 * entry["messages"] for entry in wrong]
        assert wrong[0]["checksum"] == pytest.approx(right[0]["checksum"], rel=1e-6)


def test_large_batches_and_missing_micro_steps_are_distinguished() -> None:
    small, large = ExecutedMatmul("float32", 6), ExecutedMatmul("float32", 12)
    assert check_micro_steps(2, 4 * [small], 2 * [small]) == 2
    for step in (2 * [large], 2 * [small], 6 * [small], 4 * [large], []):
        with pytest.raises(Mismatch, match="2 micro-steps, but a step has"):
            check_micro_steps(2, step, 2 * [small])
    with pytest.raises(Mismatch, match="cannot be counted"):
        check_micro_steps(2, [], [])
