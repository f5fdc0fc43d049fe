"""Capability of frameworks for sharding a training step beyond data parallelism."""

from __future__ import annotations

from abc import abstractmethod
from typing import Dict, List, Sequence

from harness.adapter import Capability

#: Names of collectives in :meth:`Sharded.collective_counts`.
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, SEND = "all_gather", "reduce_scatter", "all_reduce", "send"


class Sharded(Capability):
    """The framework shards a model, so that no rank holds all of it;
    :attr:`harness.adapter.Case.layout` says how.

    ``weights``, ``gradients`` and ``outputs`` still cover the whole model in every rank; all ranks
    request them together, in the same order. A rank has its replica's batch and loss, unless the
    loss is the mean over all replicas."""

    LACKING = "supports no parallelism but data parallelism"

    @abstractmethod
    def held_parameters(self) -> int:
        """Return the elements of trainable parameters that this rank holds between two steps."""

    @abstractmethod
    def collective_counts(self) -> Dict[str, int]:
        """Return how many collectives of each kind a training step takes part in.

        The counts may come from running the step or from its program. Called in all ranks, after
        the timed region."""


def heads_by_rank(heads: Sequence[int], ranks: int) -> List[int]:
    """Return an order of the heads of concatenated projections in which each rank's heads of all
    projections are adjacent. ``heads``: number of heads of each."""
    starts = [sum(heads[:number]) for number in range(len(heads))]
    shares = [count // ranks for count in heads]
    return [
        start + rank * share + position
        for rank in range(ranks)
        for start, share in zip(starts, shares)
        for position in range(share)
    ]
