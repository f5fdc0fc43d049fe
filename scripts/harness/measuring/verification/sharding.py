"""Whether the devices share a step as was asked: what each holds, and what it exchanges."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from harness.adapter import Case, Mismatch
from harness.kind import Context, Workload
from harness.parallelism import DATA, Layout
from harness.sharded import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, SEND


def observe(context: Context) -> None:
    """Leave what this rank holds, and what a step of it exchanges, behind the window."""
    if context.workload.case.parallelism == DATA:
        return
    context.fields["held_parameters"] = context.adapter.held_parameters()
    context.fields["exchanges"] = context.adapter.collective_counts()


def check(workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
    """Raises Mismatch where a rank holds the whole model, where together they do not, or where a
    step goes without the exchanges that it takes."""
    case = workload.case
    if case.parallelism == DATA:
        return
    held = [rank["held_parameters"] for rank in ranks]
    total = ranks[0]["trainable_parameters"]
    for rank, count in zip(ranks, held):
        check_held(case, rank["rank"], count, total)
        check_exchanges(case.parallelism, case.layout, rank["rank"], rank["exchanges"])
    if sum(held) < total * case.layout.data:
        raise Mismatch(f"all ranks together hold {sum(held)} of {total} parameters")


def check_held(case: Case, rank: int, held: int, total: int) -> None:
    """A rank holds part of the parameters. With ``fsdp`` alone it is its share of them, but for
    what is left where an array's extent is no multiple of the ranks: at most twice that."""
    if held >= total:
        raise Mismatch(f"{case.parallelism}, but rank {rank} holds all {total} parameters")
    layout = case.layout
    if layout.fsdp == case.devices and held * layout.fsdp > 2 * total:
        raise Mismatch(
            f"{case.parallelism}, but rank {rank} holds {held} of {total} parameters, more than "
            f"twice its share of {layout.fsdp} ranks"
        )


def check_exchanges(
    parallelism: str, layout: Layout, rank: int, found: Mapping[str, int]
) -> Mapping[str, int]:
    """Each of the groups that a rank is in has its collectives."""
    gathers, sums = found.get(ALL_GATHER, 0), found.get(REDUCE_SCATTER, 0)
    reduces, sends = found.get(ALL_REDUCE, 0), found.get(SEND, 0)
    lacking = {
        "gathers of parameters": layout.fsdp > 1 and not gathers,
        "sums of gradients": (layout.fsdp > 1 or layout.data > 1) and not sums + reduces,
        "sums of a layer's parts": layout.tensor > 1 and not reduces + sums,
        "messages between stages": layout.stages > 1 and not sends,
    }
    for name, is_lacking in lacking.items():
        if is_lacking:
            raise Mismatch(f"{parallelism}, but a step of rank {rank} has no {name}")
    return found
