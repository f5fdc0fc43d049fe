"""A SLURM cluster as its user describes it, and what a run asks of it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..machine.local import Machine
from .validation import ConfigError, show

if TYPE_CHECKING:
    pass

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
    that follow each other in one job; ``extra``: further options of ``sbatch``, word by word."""

    nodes: int
    cores_per_node: int
    memory_gib: float
    gpus_per_node: int = 0
    partition: str | None = None
    account: str | None = None
    constraint: str | None = None
    qos: str | None = None
    time_limit: int | None = None
    exclusive: bool = True
    runs_per_allocation: int = 1
    extra: tuple[str, ...] = ()

    @staticmethod
    def of(given: Mapping[str, Any], source: str) -> Cluster:
        """From a description that fits the schema. Raises ConfigError, which names ``source``, for
        options of ``sbatch`` that Framebench or Snakemake's plugin gives itself."""
        extra = given.get("extra", "")
        key = f"{source}: cluster.extra"
        try:
            words = tuple(shlex.split(extra) if isinstance(extra, str) else extra)
        except ValueError as error:
            raise ConfigError(
                f"{key}: found {show(extra)}; allowed: options of sbatch as a shell takes them, or "
                f"a list of words ({error})"
            ) from None
        for word in words:
            option = word.split("=")[0] if word.startswith("--") else word[:2]
            if option in _ELSEWHERE:
                raise ConfigError(
                    f"{key}: found {show(word)}; allowed: options that are not said elsewhere: "
                    f"{option} is {_ELSEWHERE[option]}"
                )
        return Cluster(**{**given, "extra": words})

    @property
    def machine(self) -> Machine:
        """What a node offers, as if it were this machine."""
        kind = f", {self.gpus_per_node} GPUs" if self.gpus_per_node else ""
        memory = f"{self.memory_gib:g} GiB{kind}"
        return Machine(self.cores_per_node, self.gpus_per_node, memory, self.nodes)

    def resources(self, nodes: int, devices: int, seconds: float, cuda: bool) -> dict[str, Any]:
        """Of a job of Snakemake's executor for SLURM, RESOURCES: ``nodes`` with ``devices`` each,
        for a run that is expected to take ``seconds``. None for what is not asked."""
        extra = [*["--exclusive"] * self.exclusive, *self.extra]
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
            self.qos,
            shlex.join(extra) or None,
        )
        return dict(zip(RESOURCES, values, strict=True))

    def options(self, nodes: int, devices: int, seconds: float, cuda: bool) -> list[str]:
        """Those of ``sbatch`` by which Snakemake's plugin asks for :meth:`resources`."""
        found = self.resources(nodes, devices, seconds, cuda)
        given = {option: found[name] for name, option in _OPTIONS.items()}
        words = [f"--{option}={value}" for option, value in given.items() if value is not None]
        extra = shlex.split(found["slurm_extra"] or "")
        return [*words, f"--cpus-per-task={self.cores_per_node}", *extra]

    def asked(self, cuda: bool) -> list[str]:
        """Those of RESOURCES that some job asks for. The others are left to Snakemake's
        ``--default-resources``: a rule that names a resource has it, even as None."""
        found = self.resources(2, 1, 0.0, cuda)
        return [name for name, value in found.items() if value is not None]

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
    "qos",
    "slurm_extra",
)

#: Of those the ones that stand for an option of ``sbatch``.
_OPTIONS = {
    "nodes": "nodes",
    "tasks": "ntasks",
    "gres": "gres",
    "mem_mb": "mem",
    "runtime": "time",
    "slurm_partition": "partition",
    "slurm_account": "account",
    "constraint": "constraint",
    "qos": "qos",
}

#: Options of ``sbatch`` that are none of ``extra``, and whose they are.
_ELSEWHERE = {
    **dict.fromkeys(("--account", "-A"), "cluster.account"),
    **dict.fromkeys(("--partition", "-p"), "cluster.partition"),
    **dict.fromkeys(("--constraint", "-C"), "cluster.constraint"),
    **dict.fromkeys(("--qos", "-q"), "cluster.qos"),
    **dict.fromkeys(("--time", "-t"), "cluster.time_limit"),
    **dict.fromkeys(("--mem", "--mem-per-cpu"), "cluster.memory_gib"),
    **dict.fromkeys(("--cpus-per-task", "-c", "--cpus-per-gpu"), "cluster.cores_per_node"),
    **dict.fromkeys(("--gres", "--gpus", "-G"), "cluster.gpus_per_node and the suite"),
    **dict.fromkeys(("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-gpu"), "the suite's"),
    **dict.fromkeys(
        ("--job-name", "-J", "--output", "-o", "--error", "-e", "--comment", "--export")
        + ("--chdir", "-D", "--workdir", "--parsable", "--clusters", "-M", "--array", "-a"),
        "Snakemake's",
    ),
}


def without_effect(given: Collection[str], asked: Collection[str]) -> list[str]:
    """Of resources given with ``--default-resources``, those that runs do not ask for so, because
    the plan and the cluster's description say what they ask for. Snakemake gives ``mem_mb`` a
    default of its own, which nobody has asked for."""
    return sorted((set(given) & set(asked)) - {"mem_mb"})
