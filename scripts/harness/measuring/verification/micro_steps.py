"""Verify that a training step has the requested micro-steps and all-reduces gradients once."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from core.case import Case
from core.parallelism import DATA

from harness.adapter import Accumulation, ExecutedMatmul, Mismatch
from harness.kind import Context


def needed(case: Case) -> List[type]:
    """Return the capabilities that the micro-steps of a case need."""
    return [Accumulation] * (case.accumulation > 1)


def check(context: Context) -> None:
    """Store the number of micro-steps of a step, if they were requested.

    Raises Mismatch where a step has another number."""
    adapter, requested = context.adapter, context.workload.case.accumulation
    if requested > 1:
        step, micro_step = adapter.step_matmuls(), adapter.micro_step_matmuls()
        context.fields["micro_steps"] = check_micro_steps(requested, step, micro_step)


def check_micro_steps(
    requested: int, step: Sequence[ExecutedMatmul], micro_step: Sequence[ExecutedMatmul]
) -> int:
    """Return ``requested`` if a step has that many times the matmuls of a micro-step.

    Multiply-adds are compared too: one large batch has the matmuls of one micro-step, only
    larger."""
    products, multiply_adds = _totals(step)
    each, each_multiply_adds = _totals(micro_step)
    if not each:
        raise Mismatch("no matmul of a micro-step was observed: micro-steps cannot be counted")
    if (products, multiply_adds) != (requested * each, requested * each_multiply_adds):
        raise Mismatch(
            f"{requested} micro-steps, but a step has {products} matmuls with {multiply_adds} "
            f"multiply-adds, and a micro-step {each} with {each_multiply_adds}"
        )
    return requested


def _totals(products: Sequence[ExecutedMatmul]) -> Tuple[int, int]:
    """Return number and total multiply-adds of the matmuls."""
    return len(products), sum(product.multiply_adds for product in products)


def check_all_reduces(context: Context) -> None:
    """Check that a step all-reduces its gradients once, however many micro-steps it has.

    Raises Mismatch if not, Unsupported where the framework does not tell. Parallelism other than
    data parallelism is checked by :mod:`harness.measuring.verification.sharding`."""
    case, adapter = context.workload.case, context.adapter
    if case.accumulation == 1 or context.rank_context.world_size == 1 or case.parallelism != DATA:
        return
    once = len(adapter.gradient_messages())
    sent = context.fields["step_all_reduces"] = adapter.step_all_reduces()
    if sent > once:
        raise Mismatch(
            f"a step of {case.accumulation} micro-steps sends {sent} gradient messages, not "
            f"the {once} of one all-reduce"
        )
