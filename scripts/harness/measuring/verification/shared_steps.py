"""Verify that devices share a step as requested, by the parameters that each holds and its
communication."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from core.parallelism import DATA, Layout

from harness.adapter import Accumulation, Case, Mismatch
from harness.kind import Context, Workload
from harness.sharded import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, SEND, Sharded

#: Capabilities that an adapter needs for another value of an axis than its default; () where the
#: adapter is not concerned.
CAPABILITIES: Dict[str, Tuple[type, ...]] = {
    "accumulation": (Accumulation,),
    "parallelism": (Sharded,),
    "input": (),  # kinds that read samples require their own capability
}


def needed(case: Case) -> List[type]:
    """Return the capabilities that the axes of a case need."""
    return [need for axis in case.differing() for need in CAPABILITIES[axis.name]]


def observe(context: Context) -> None:
    """Store the parameters that this rank holds and its collectives per step, after the timed
    region, where devices share more than the data."""
    if context.workload.case.parallelism != DATA:
        context.fields["held_parameters"] = context.adapter.held_parameters()
        context.fields["collectives"] = context.adapter.collective_counts()


def check(workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
    """Raise Mismatch where a rank holds the whole model, where all ranks together do not hold it,
    or where collectives are missing."""
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
        "messages between stages": layout.pipeline > 1 and not sends,
    }
    for name, is_missing in missing.items():
        if is_missing:
            raise Mismatch(f"{parallelism}, but a step of rank {rank} has no {name}")
    return counts
