"""A SLURM cluster as its user describes it, and what a run asks of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .machine import Machine

if TYPE_CHECKING:
    from .plan import Plan

#: How much longer than expected a run may take before it is ended, and seconds on top for starting
#: the job, half of which are kept for ending in order.
_SLACK, _RESERVE_SECONDS = 3.0, 300.0

#: What starts one process on each node of an allocation. The cores are bound by the harness, which
#: knows which rank they are for; memory and devices are all that the job has.
START_NODES = (
    "srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --cpu-bind=none --mem=0 --mpi=none"
    " --kill-on-bad-exit=0"
)


@dataclass(frozen=True)
class Cluster:
    """Nodes that are alike. ``nodes``: the most that a run may take; ``memory_gib`` of a node;
    ``time_limit``: of the partition, in minutes; ``runs_per_allocation``: runs of the same shape
    that follow each other in one job; ``extra``: further options of ``sbatch``."""

    nodes: int
    cores_per_node: int
    memory_gib: float
    gpus_per_node: int = 0
    partition: str | None = None
    account: str | None = None
    constraint: str | None = None
    time_limit: int | None = None
    exclusive: bool = True
    runs_per_allocation: int = 1
    extra: str = ""

    @property
    def machine(self) -> Machine:
        """What a node offers, as if it were this machine."""
        kind = f", {self.gpus_per_node} GPUs" if self.gpus_per_node else ""
        memory = f"{self.memory_gib:g} GiB{kind}"
        return Machine(self.cores_per_node, self.gpus_per_node, memory, self.nodes)

    def resources(self, nodes: int, devices: int, seconds: float, cuda: bool) -> dict[str, Any]:
        """Of a job of Snakemake's executor for SLURM, RESOURCES: ``nodes`` with ``devices`` each,
        for a run that is expected to take ``seconds``. None for what is not asked."""
        extra = [*["--exclusive"] * self.exclusive, *[self.extra] * bool(self.extra)]
        values = (
            nodes,
            nodes,
            # The harness starts its own on the other nodes.
            "srun" if nodes > 1 else None,
            f"gpu:{devices}" if cuda else None,
            # Else SLURM counts tasks by GPUs.
            0 if cuda else None,
            self.memory_mib,
            self.minutes(seconds),
            self.partition,
            self.account,
            self.constraint,
            f"'{' '.join(extra)}'" if extra else None,
        )
        return dict(zip(RESOURCES, values, strict=True))

    @property
    def memory_mib(self) -> int:
        """Of a node, to ask SLURM for and to keep to."""
        return math.floor(self.memory_gib * 1024)

    def minutes(self, seconds: float) -> int:
        """To ask SLURM for, where ``seconds`` are expected; at most the partition's limit."""
        wanted = math.ceil((_SLACK * seconds + _RESERVE_SECONDS) / 60)
        return min(wanted, self.time_limit) if self.time_limit else wanted

    def run_limit(self, seconds: float) -> float:
        """Seconds after which such a run is to end by itself, so that it leaves a record."""
        return max(60 * self.minutes(seconds) - _RESERVE_SECONDS / 2, 30.0)


#: In the order of :meth:`Cluster.resources`.
RESOURCES = (
    "nodes",
    "tasks",
    "mpi",
    "gres",
    "tasks_per_gpu",
    "mem_mb",
    "runtime",
    "slurm_partition",
    "slurm_account",
    "constraint",
    "slurm_extra",
)


def allocations(plan: Plan, size: int) -> dict[str, str]:
    """The name of each run's allocation, where ``size`` runs of one shape share one: those that
    follow each other in the plan, so that the repeats of a case stay apart."""
    seen: Counter[str] = Counter()
    found = {}
    for run in [*plan.pending, *plan.reserve]:
        shape = run.case.topology
        found[run.name] = f"{shape}-{seen[shape] // size}"
        seen[shape] += 1
    return found
