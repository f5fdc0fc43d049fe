"""A SLURM cluster as its user describes it, and what a run asks of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .machine import Machine

#: How much longer than expected a run may take before SLURM ends it; seconds to start a job.
_SLACK, _START_SECONDS = 3.0, 300.0

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
    gpus_per_node: int
    cores_per_node: int
    memory_gib: float
    partition: str | None
    account: str | None
    constraint: str | None
    time_limit: int | None
    exclusive: bool
    runs_per_allocation: int
    extra: str

    @staticmethod
    def of(given: Mapping[str, Any]) -> Cluster:
        """From the checked configuration."""
        return Cluster(**{**DEFAULTS, **given})

    @property
    def machine(self) -> Machine:
        """What a node offers, as if it were this machine."""
        kind = f", {self.gpus_per_node} GPUs" if self.gpus_per_node else ""
        memory = f"{self.memory_gib:g} GiB{kind}"
        return Machine(self.cores_per_node, self.gpus_per_node, memory, self.nodes)

    def resources(self, nodes: int, devices: int, cuda: bool, seconds: float) -> dict[str, Any]:
        """Of a job of Snakemake's executor for SLURM: ``nodes`` with ``devices`` each, for about
        ``seconds``."""
        asked: dict[str, Any] = {
            "nodes": nodes,
            "tasks": nodes,
            "mem_mb": math.floor(self.memory_gib * 1024),
            "runtime": self.minutes(seconds),
        }
        if nodes > 1:
            asked["mpi"] = "srun"  # the harness starts its own on the other nodes
        if cuda:
            asked["gres"] = f"gpu:{devices}"
            asked["tasks_per_gpu"] = 0  # else SLURM counts tasks by GPUs
        for name, value in (
            ("slurm_partition", self.partition),
            ("slurm_account", self.account),
            ("constraint", self.constraint),
        ):
            if value is not None:
                asked[name] = value
        extra = " ".join(["--exclusive"] * self.exclusive + [self.extra] * bool(self.extra))
        if extra:
            asked["slurm_extra"] = f"'{extra}'"
        return asked

    def minutes(self, seconds: float) -> int:
        """To ask for, where ``seconds`` are expected; never more than the partition's limit."""
        wanted = math.ceil((_SLACK * seconds + _START_SECONDS) / 60)
        return min(wanted, self.time_limit) if self.time_limit else wanted


DEFAULTS: dict[str, Any] = {
    "gpus_per_node": 0,
    "partition": None,
    "account": None,
    "constraint": None,
    "time_limit": None,
    "exclusive": True,
    "runs_per_allocation": 1,
    "extra": "",
}
