"""Case and place of a rank, and how an adapter says that it cannot do what the case asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from core.case import Case as Case


class Unsupported(Exception):
    """The framework cannot do what the case asks; the message is its reason."""


class Mismatch(Exception):
    """Run that differs from the request: matmuls in another precision, a compiler that fell
    back."""


@dataclass(frozen=True)
class RankContext:
    """Place of this rank and the way to the others. It comes from the environment alone, so any
    launcher can start the rank."""

    rank: int
    local_rank: int
    addresses: Sequence[str]  # "host:port" of every rank, in rank order; [0] is the rendezvous
    accelerator: str  # cpu, cuda
    threads: int  # intra-op threads of this rank (CPU: its cores)
    seed: int

    @property
    def world_size(self) -> int:
        return len(self.addresses)

    @property
    def dropout_seed(self) -> int:
        """Seed of this rank's dropout, which differs between ranks."""
        return self.seed + 1 + self.rank
