"""What a rank is to do and where it runs, and how an adapter says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence

from harness.inputs import SYNTHETIC
from harness.parallelism import DATA, Layout, layout_of


class Unsupported(Exception):
    """The framework cannot do what the case asks; the message is its reason."""


class Mismatch(Exception):
    """What ran is not what was asked: products in another precision, a compiler that fell back."""


@dataclass(frozen=True)
class Case:
    """One point of the matrix. ``batch_per_device`` counts the samples that a device computes in a
    micro-step, of which a training step has ``accumulation``; ``sequence_length`` counts tokens and
    is None for a model without sequences; ``parallelism``: see :mod:`harness.parallelism`;
    ``input``: where samples come from, see :mod:`harness.inputs`."""

    framework: str
    model: str
    mode: str  # train, inference
    nodes: int
    devices_per_node: int
    batch_per_device: int
    precision: str  # a name of scripts/precisions
    compiler: str  # none, or a name from the framework's framework.json
    sequence_length: Optional[int]
    accumulation: int = 1
    parallelism: str = DATA
    input: str = SYNTHETIC

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def samples_of_replica(self) -> int:
        """That a device computes between one update and the next."""
        return self.batch_per_device * self.accumulation

    @property
    def samples_per_step(self) -> int:
        """That all devices together compute between one update and the next."""
        return self.samples_of_replica * self.layout.replicas

    @property
    def layout(self) -> Layout:
        """How the devices share a step."""
        return layout_of(self.parallelism, self.devices)


@dataclass(frozen=True)
class RankContext:
    """Where this rank runs and how it finds the others. Filled from the environment alone, so
    that it does not matter who started the rank."""

    rank: int
    local_rank: int
    addresses: Sequence[str]  # "host:port" of every rank, in rank order; [0] is the rendezvous
    accelerator: str  # cpu, cuda
    threads: int  # intra-op threads of this rank (CPU: its cores)
    seed: int

    @property
    def world_size(self) -> int:
        return len(self.addresses)
