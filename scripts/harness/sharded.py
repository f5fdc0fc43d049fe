"""Capability of frameworks for sharding a training step beyond data parallelism."""

from __future__ import annotations

from abc import abstractmethod
from typing import Dict

from harness.adapter import Capability

#: Names of collectives in :meth:`Sharded.collective_counts`.
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, SEND = "all_gather", "reduce_scatter", "all_reduce", "send"


class Sharded(Capability):
    """The framework shards a model, so that no rank holds all of it;
    :attr:`harness.adapter.Case.layout` says how.

    ``weights``, ``gradients`` and ``outputs`` are still those of the whole model in every rank; all
    ranks request them together, in the same order. A rank's batch is that of its replica, and so is
    its loss, unless that is the mean over all replicas."""

    LACKING = "supports no parallelism but data parallelism"

    @abstractmethod
    def held_parameters(self) -> int:
        """Return the elements of trainable parameters that this rank holds between two steps."""

    @abstractmethod
    def collective_counts(self) -> Dict[str, int]:
        """Return how many collectives of each kind a training step takes part in.

        The step may be run, or read from its program. Called in all ranks, after the timed
        region."""
