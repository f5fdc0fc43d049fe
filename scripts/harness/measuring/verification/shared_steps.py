"""Verify that micro-steps, and devices, share a step as requested: how many micro-steps there are,
what each device holds, and what it communicates."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple

from core.parallelism import DATA, Layout

from harness.adapter import Accumulation, Case, ExecutedMatmul, Mismatch
from harness.kind import Context, Workload
from harness.sharded import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, SEND, Sharded


def needed(case: Case) -> List[type]:
    """Return the capabilities that the micro-steps and the parallelism of a case need."""
    return [*[Accumulation] * (case.accumulation > 1), *[Sharded] * (case.parallelism != DATA)]


def check_steps(context: Context) -> None:
    """Store the number of micro-steps of a step, if they were requested. Raises Mismatch where a
    step has another number."""
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

    Raises Mismatch if not, Unsupported where the framework does not tell."""
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


def observe(context: Context) -> None:
    """Store the parameters that this rank holds and its collectives per step, after the timed
    region, where devices share more than data."""
    if context.workload.case.parallelism != DATA:
        context.fields["held_parameters"] = context.adapter.held_parameters()
        context.fields["collectives"] = context.adapter.collective_counts()


def check(workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
    """Raise Mismatch where a rank holds the whole model, all ranks together do not, or collectives
    are missing."""
    case = workload.case
    if case.parallelism == DATA:
        return
    held = [rank["held_parameters"] for rank in ranks]
    total = ranks[0]["trainable_parameters"]
    for rank, count in zip(ranks, held):
        check_held(case, rank["rank"], count, total)
        check_collectives(case.parallelism, case.layout, rank["rank"], rank["collectives"])
    if sum(held) < total * case.layout.data:
        raise Mismatch(f"all ranks together hold {sum(held)} of {total} parameters")


def check_held(case: Case, rank: int, held: int, total: int) -> None:
    """Check that a rank holds only part of the parameters.

    With ``fsdp`` alone a rank holds at most twice its share, because extents may not divide
    evenly."""
    if held >= total:
        raise Mismatch(f"{case.parallelism}, but rank {rank} holds all {total} parameters")
    layout = case.layout
    if layout.fsdp == case.devices and held * layout.fsdp > 2 * total:
        raise Mismatch(
            f"{case.parallelism}, but rank {rank} holds {held} of {total} parameters, more than "
            f"twice its share of {layout.fsdp} ranks"
        )


def check_collectives(
    parallelism: str, layout: Layout, rank: int, counts: Mapping[str, int]
) -> Mapping[str, int]:
    """Check that a rank takes part in the collectives of each of its groups; return their
    counts."""
    gathers, sums = counts.get(ALL_GATHER, 0), counts.get(REDUCE_SCATTER, 0)
    reduces, sends = counts.get(ALL_REDUCE, 0), counts.get(SEND, 0)
    missing = {
        "gathers of parameters": layout.fsdp > 1 and not gathers,
        "sums of gradients": (layout.fsdp > 1 or layout.data > 1) and not sums + reduces,
        "sums of a layer's parts": layout.tensor > 1 and not reduces + sums,
        "messages between stages": layout.stages > 1 and not sends,
    }
    for name, is_missing in missing.items():
        if is_missing:
            raise Mismatch(f"{parallelism}, but a step of rank {rank} has no {name}")
    return counts
