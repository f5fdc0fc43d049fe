"""Cluster allocations that runs of a plan share, and allocations that SLURM refuses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from ..plan.planning import Plan, PlannedRun


def refused(plan: Plan, refusal: Callable[[Sequence[str]], str]) -> list[str]:
    """Return a line for each topology of pending runs that SLURM would refuse.

    ``refusal`` asks SLURM with the longest run. Empty without a SLURM cluster.
    """
    described = plan.settings.cluster
    if described is None:
        return []
    shapes: dict[str, list[PlannedRun]] = defaultdict(list)
    for run in plan.pending:
        shapes[run.case.topology].append(run)
    lines = []
    for topology, runs in shapes.items():
        case, minutes = runs[0].case, max(plan.minutes[run.case] for run in runs)
        cuda = plan.capacity.accelerator == "cuda"
        if why := refusal(
            described.options(case.nodes, case.devices_per_node, minutes, cuda, case.node)
        ):
            lines.append(f"SLURM would not take the {len(runs)} run(s) of {topology}: {why}")
    return lines


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
