"""A SLURM cluster as its user describes it, and what a run asks of it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field

from ..machine.local import Machine
from .fields import (
    MILLION,
    Allowed,
    FromText,
    Keys,
    OptionalText,
    ReadAs,
    Switch,
    Text,
    Whole,
    default,
)
from .validation import NotAllowed, show

#: How much longer than expected a run may take before it is ended, and seconds on top for starting
#: the job, half of which are kept for ending in order.
_SLACK, _RESERVE_SECONDS = 3.0, 300.0

#: What starts one process on each node of an allocation. The cores are bound by the harness, which
#: knows which rank they are for; memory and devices are all that the job has.
START_NODES = (
    "srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --cpu-bind=none --mem=0 --mpi=none"
    " --kill-on-bad-exit=0"
)

#: Options of ``sbatch`` that are none of ``extra``, and whose they are.
_OWNED = {
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


def _options(written: str | list[str]) -> tuple[str, ...]:
    """Words that are none of Framebench's own, nor of Snakemake's plugin."""
    try:
        words = tuple(shlex.split(written) if isinstance(written, str) else written)
    except ValueError as error:
        raise NotAllowed(
            f"options of sbatch as a shell takes them, or a list of words ({error})"
        ) from None
    for word in words:
        option = word.split("=")[0] if word.startswith("--") else word[:2]
        if option in _OWNED:
            raise NotAllowed(
                f"options that are not said elsewhere: {option} is {_OWNED[option]}", show(word)
            )
    return words


class Cluster(Keys):
    """Nodes that are alike. ``extra``: word by word."""

    nodes: Annotated[int, Whole(1, MILLION), FromText]
    gpus_per_node: Annotated[int, Whole(0, MILLION), FromText] = 0
    cores_per_node: Annotated[int, Whole(1, MILLION), FromText]
    memory_gib: Annotated[
        float, Field(gt=0, le=2**20), FromText, Allowed("a number of GiB above 0 and up to 1048576")
    ]
    partition: OptionalText = None
    account: OptionalText = None
    constraint: OptionalText = None
    qos: OptionalText = None
    time_limit: Annotated[
        Annotated[int, Field(ge=1, le=525600)] | None,
        FromText,
        Allowed("a whole number of minutes from 1 to 525600 (a year)"),
    ] = None
    exclusive: Switch = True
    runs_per_allocation: Annotated[int, Whole(1, MILLION), FromText] = 1
    extra: Annotated[
        tuple[str, ...],
        ReadAs(
            Annotated[str | list[Text], Allowed("options of sbatch, a text or a list of words")],
            _options,
        ),
    ] = default("")

    @property
    def machine(self) -> Machine:
        """What a node offers, as if it were this machine."""
        kind = f", {self.gpus_per_node} GPUs" if self.gpus_per_node else ""
        memory = f"{self.memory_gib:g} GiB{kind}"
        return Machine(self.cores_per_node, self.gpus_per_node, memory, self.nodes)

    def resources(
        self, nodes: int, devices: int, seconds: float, cuda: bool, node: str = ""
    ) -> dict[str, Any]:
        """Of a job of Snakemake's executor for SLURM, RESOURCES: ``nodes`` with ``devices`` each,
        for a run that is expected to take ``seconds``, on this ``node`` or, for "",
        on any. None for what is not asked."""
        named = [f"--nodelist={node}"] if node else []
        extra = [*["--exclusive"] * self.exclusive, *named, *self.extra]
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

    def options(
        self, nodes: int, devices: int, seconds: float, cuda: bool, node: str = ""
    ) -> list[str]:
        """Those of ``sbatch`` by which Snakemake's plugin asks for :meth:`resources`."""
        resources = self.resources(nodes, devices, seconds, cuda, node)
        values = {option: resources[name] for name, option in _OPTIONS.items()}
        words = [f"--{option}={value}" for option, value in values.items() if value is not None]
        extra = shlex.split(resources["slurm_extra"] or "")
        return [*words, f"--cpus-per-task={self.cores_per_node}", *extra]

    def asked(self, cuda: bool, each_node: bool = False) -> list[str]:
        """Those of RESOURCES that some job asks for. The others are left to Snakemake's
        ``--default-resources``: a rule that names a resource has it, even as None."""
        resources = self.resources(2, 1, 0.0, cuda, "named" if each_node else "")
        return [name for name, value in resources.items() if value is not None]

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


def without_effect(given: Collection[str], asked: Collection[str]) -> list[str]:
    """Of resources given with ``--default-resources``, those that runs do not ask for so, because
    the plan and the cluster's description say what they ask for. Snakemake gives ``mem_mb`` a
    default of its own, which nobody has asked for."""
    return sorted((set(given) & set(asked)) - {"mem_mb"})
