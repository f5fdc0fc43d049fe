"""Cluster allocations that runs of a plan share."""

from __future__ import annotations

from collections import Counter

from ..plan.planning import Plan


def allocations(plan: Plan, size: int, apart: bool = False) -> dict[str, str]:
    """Return the allocation name of each run; ``size`` runs of one topology and node share one.

    Runs that share one follow each other in the plan, so that the repeats of a case stay apart.
    ``apart``: runs of different rounds never share one.
    """
    seen: Counter[str] = Counter()
    results = {}
    for run in [*plan.pending, *plan.reserve]:
        round_of = f"r{run.repeat}" if apart else ""
        shape = "-".join(filter(None, (run.case.topology, run.case.node, round_of)))
        results[run.name] = f"{shape}-{seen[shape] // size}"
        seen[shape] += 1
    return results
