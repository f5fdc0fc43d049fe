"""What a framework brings that shares a training step in another way than by data."""

from __future__ import annotations

from abc import abstractmethod
from typing import Dict

from harness.adapter import Capability

#: Collectives by the names that :meth:`Sharded.collective_counts` has for them.
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, SEND = "all_gather", "reduce_scatter", "all_reduce", "send"


class Sharded(Capability):
    """No rank holds the whole model, as the case's :attr:`harness.adapter.Case.layout` says.

    ``weights``, ``gradients`` and ``outputs`` are nevertheless of the whole model, in every rank:
    all of them ask for these together, in the same order. A rank's batch is that of its replica,
    and so is its loss, where it is not the mean over all of them."""

    LACKING = "shares no step among devices but by data"

    @abstractmethod
    def held_parameters(self) -> int:
        """Elements of trainable parameters that this rank has in memory between two steps."""

    @abstractmethod
    def collective_counts(self) -> Dict[str, int]:
        """How many collectives of which kind a training step takes part in, which this may run, or
        read from its program. Called in all ranks, behind the window."""
