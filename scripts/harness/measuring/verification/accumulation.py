"""Whether a training step has the micro-steps that were asked for, and exchanges gradients once."""

from __future__ import annotations

from typing import Sequence, Tuple

from harness.adapter import ExecutedMatmul, Mismatch
from harness.kind import Context
from harness.parallelism import DATA


def check_micro_steps(
    asked: int, step: Sequence[ExecutedMatmul], micro_step: Sequence[ExecutedMatmul]
) -> int:
    """``asked``, where a ``step`` has as many times the products of a ``micro_step``, and their
    multiply-adds. One large batch has the products of one micro-step, only larger."""
    products, multiply_adds = _counted(step)
    each, each_multiply_adds = _counted(micro_step)
    if not each:
        raise Mismatch("no matrix product of a micro-step was observed: they cannot be counted")
    if (products, multiply_adds) != (asked * each, asked * each_multiply_adds):
        raise Mismatch(
            f"{asked} micro-steps, but a step has {products} products with {multiply_adds} "
            f"multiply-adds, and a micro-step {each} with {each_multiply_adds}"
        )
    return asked


def _counted(products: Sequence[ExecutedMatmul]) -> Tuple[int, int]:
    """How many there are, and their multiply-adds."""
    return len(products), sum(product.multiply_adds for product in products)


def check_exchanges(context: Context) -> None:
    """Check that a step all-reduces its gradients once, however many micro-steps it has.

    Raises Mismatch if not, Unsupported where the framework does not tell. Parallelism other than
    data parallelism is checked by :mod:`harness.measuring.verification.sharding`."""
    case, adapter = context.workload.case, context.adapter
    if case.accumulation == 1 or context.rank_context.world_size == 1 or case.parallelism != DATA:
        return
    once = len(adapter.gradient_messages())
    found = context.fields["step_exchanges"] = adapter.step_all_reduces()
    if found > once:
        raise Mismatch(
            f"a step of {case.accumulation} micro-steps sends {found} messages of gradients, not "
            f"the {once} of one exchange"
        )
