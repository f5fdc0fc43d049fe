"""SLURM cluster of the user's configuration, and the resources that jobs request."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from core.gpus import Gpu, profile_bytes
from pydantic import Field, model_validator

from ..machine.local import Machine
from .keys import MILLION, Count, KeysFromTexts, Text, matching
from .validation import NotAllowed, show

#: Seconds of a job besides its run's time limit; half of them are for a clean end.
_RESERVE_SECONDS = 300.0
_YEAR = 525600  # minutes

#: Characters in NVML's names of GPU types that Snakemake's plugin refuses in ``gres``.
_NOT_IN_GRES = "+-"

_Gres = Annotated[str, matching(r"gpu(:[\w.+-]*[A-Za-z][\w.+-]*)?", "gpu or gpu:TYPE")]
_Gibibytes = Annotated[float, Field(gt=0, le=2**20)]
_Version = Annotated[
    str,
    Field(coerce_numbers_to_str=True),
    matching(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}", "a version as nvidia-smi writes it: 550.54.15, 9.0"),
]


class Cluster(KeysFromTexts):
    """Nodes of a cluster, which are alike."""

    nodes: Count
    gpus_per_node: Annotated[int, Field(ge=0, le=MILLION)] = 0
    cores_per_node: Count
    memory_gib: _Gibibytes
    gpu_driver: _Version | None = None
    gpu_capability: _Version | None = None
    gpu_memory_gib: _Gibibytes | None = None
    partition: Text | None = None
    gres: _Gres | None = None
    time_limit: Annotated[int, Field(ge=1, le=_YEAR)] | None = None
    most_node_hours: Annotated[float, Field(gt=0, le=1e9)] | None = None

    @model_validator(mode="after")
    def _agreeing(self) -> Self:
        for key in ("gpu_driver", "gpu_capability", "gpu_memory_gib", "gres"):
            if getattr(self, key) and not self.gpus_per_node:
                raise NotAllowed("with gpus_per_node: 0, none", show(getattr(self, key)), key)
        return self

    @property
    def machine(self) -> Machine:
        """A node of the cluster, described like a local machine."""
        kind = f", {self.gpus_per_node} GPUs" if self.gpus_per_node else ""
        memory = f"{self.memory_gib:g} GiB{kind}"
        return Machine(
            self.cores_per_node, self.gpus_per_node, memory, self.nodes,
            memory_bytes=int(self.memory_gib * 2**30), devices=self._gpus,
        )  # fmt: skip

    @property
    def _gpus(self) -> tuple[Gpu, ...]:
        """GPUs of a node as far as they are described; () without a description."""
        kind = (self.gres or "").partition(":")[2] or "GPU"
        nominal = profile_bytes(kind)
        if not (self.gpu_driver or self.gpu_capability or self.gpu_memory_gib or nominal):
            return ()
        gpu = Gpu(
            kind,
            int(self.gpu_memory_gib * 2**30) if self.gpu_memory_gib else nominal,
            self.gpu_driver or "",
            uuid="",
            pci_address="",
            capability=self.gpu_capability or "",
            is_instance=nominal is not None,
        )
        return (gpu,) * self.gpus_per_node

    def resources(
        self, nodes: int, devices: int, minutes: int, cuda: bool, node: str = "", extra: str = ""
    ) -> dict[str, Any]:
        """Return Snakemake's resources of a job, by name; None for unset ones.

        The job has ``nodes`` with ``devices`` each, or this ``node``. ``extra``: options of
        ``sbatch`` for all jobs, to which options for the node and its GPUs are added.
        """
        options = [*filter(None, [extra, node and f"--nodelist={node}"])]
        gres = f"{self.gres or 'gpu'}:{devices}" if cuda else None
        if gres and {*gres} & {*_NOT_IN_GRES}:
            options.append(f"--gpus-per-node={gres.partition(':')[2]}")
            gres = None
        return {
            "nodes": nodes,
            "tasks": nodes,
            # The harness starts its processes on other nodes itself.
            "mpi": "srun" if nodes > 1 else None,
            "gres": gres,
            # Otherwise SLURM counts tasks by GPUs.
            "tasks_per_gpu": 0 if cuda else None,
            "mem_mb": self.memory_mib,
            "runtime": minutes,
            "slurm_partition": self.partition,
            "slurm_extra": " ".join(options) or None,
        }

    def asked(self, cuda: bool, each_node: bool = False) -> list[str]:
        """Return the names of resources that some job sets. Rules must name no others: even the
        value None would override Snakemake's ``--default-resources``."""
        resources = self.resources(2, 1, 1, cuda, "named" if each_node else "")
        return [name for name, value in resources.items() if value is not None]

    @property
    def memory_mib(self) -> int:
        """Memory of a node in MiB, both requested of SLURM and enforced."""
        return math.floor(self.memory_gib * 1024)

    def minutes(self, seconds: float) -> int:
        """Return the minutes to request for a run of ``seconds``."""
        return min(math.ceil((seconds + _RESERVE_SECONDS) / 60), self.time_limit or _YEAR)

    def run_limit(self, seconds: float) -> float:
        """Return the seconds after which a run that may take ``seconds`` ends by itself, so that it
        leaves a record before the partition's ``time_limit`` kills its job."""
        return min(seconds, max(60 * self.minutes(seconds) - _RESERVE_SECONDS / 2, 30.0))
