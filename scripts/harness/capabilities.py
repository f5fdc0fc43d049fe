"""Capabilities of frameworks beyond a step: training on changing data, sharding a model,
micro-benchmarks; and a class with the capabilities that nearly every framework has."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Dict, List, Sequence

from harness.adapter import AllReduce, Capability, Collectives, Numerics, Rounding, Unsupported
from harness.operations import ALL_REDUCE, Operation
from harness.primitives import Primitives

#: Name of a message between stages in :meth:`Sharded.collective_counts`; other names are those of
#: the collectives in :mod:`harness.operations`.
SEND = "send"


class BatchInput(Capability):
    """A step uses the batch and the learning rate that the adapter was given last."""

    LACKING: ClassVar[str] = "cannot change the batch or the learning rate once a model is built"

    @abstractmethod
    def feed(self, batch: Dict[str, Any]) -> None:
        """Copy ``batch`` to the device for the next :meth:`step`.

        It has the same numpy arrays by name, shape and dtype as in :meth:`build`, and may be
        overwritten when this returns."""

    @abstractmethod
    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of all following steps; the optimizer keeps its state.

        Raises :class:`harness.adapter.Unsupported` where the step that was built cannot
        change it."""

    def inference_adapter(self) -> Any:
        """Return an adapter of the same model for inference in this process, started but not built.

        It has running statistics and no dropout. Called before :meth:`build`, which seeds
        random numbers anew. Raises :class:`harness.adapter.Unsupported` where two models
        cannot coexist."""
        clone = copy.copy(self)
        clone.case = self.case.inference
        return clone


class Checkpointing(BatchInput):
    """Another process can continue a training; each rank has a file of its own."""

    LACKING: ClassVar[str] = "does not continue a training of another process"

    def require_resumable(self) -> None:
        """Raise :class:`harness.adapter.Unsupported` for a case that cannot be continued."""

    @abstractmethod
    def save_training(self, path: str) -> None:
        """Write everything that determines the next steps to ``path``, a file or folder that does
        not exist yet.

        It contains weights and running statistics, the optimizer's state, the loss scale and, where
        the framework exposes it, the random state, which dropout uses."""

    @abstractmethod
    def load_training(self, path: str) -> None:
        """Restore the state after :meth:`build` of the same case.

        But for dropout masks, the next step is, bit by bit, the one that would have followed
        :meth:`save_training`."""


def save_arrays(path: str, arrays: Sequence[Any]) -> None:
    import numpy as np

    with open(path, "wb") as file:  # numpy appends a suffix to a name, but not to an open file
        np.savez(file, *arrays)


def load_arrays(path: str, count: int) -> List[Any]:
    """Return the arrays of :func:`save_arrays`. Raises ValueError unless there are ``count``: then
    the file is from another training."""
    import numpy as np

    with np.load(path) as kept:
        if len(kept.files) != count:
            raise ValueError(f"{path} has {len(kept.files)} arrays, the training {count}")
        return [kept[f"arr_{number}"] for number in range(count)]


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
    """Return an order of the heads of concatenated projections in which the heads of a rank, from
    all projections, are adjacent. ``heads``: number of heads of each projection."""
    starts = [sum(heads[:number]) for number in range(len(heads))]
    shares = [count // ranks for count in heads]
    return [
        start + rank * share + position
        for rank in range(ranks)
        for start, share in zip(starts, shares)
        for position in range(share)
    ]


class SingleOperations(Capability):
    """The framework runs single operations as its users call them: eagerly, or each compiled by
    itself if there is no eager mode. :meth:`synchronize` waits for the last one."""

    LACKING: ClassVar[str] = "runs no single operations"

    @abstractmethod
    def primitives(self) -> Primitives:
        """Return the framework's primitives, after :meth:`start` and without :meth:`build`."""


class MicroBenchmarks(SingleOperations, Collectives):
    """The framework runs single layers as its models here call them, and the collectives that its
    users call: alone, after a matmul, and next to computation."""

    LACKING: ClassVar[str] = "runs no single layers, and no collective but its gradient all-reduce"

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        made = self.primitives_with(ALL_REDUCE).collective(ALL_REDUCE, array, "float32")
        return AllReduce(made.run, made.result)

    def primitives_with(self, operation: str) -> Primitives:
        """Return the primitives. Raises Unsupported where they lack the collective."""
        primitives = self.primitives()
        if operation not in primitives.COLLECTIVES:
            raise self.no_collective(operation, primitives.LACKING)
        return primitives

    def no_collective(self, operation: str, reason: str) -> Unsupported:
        """Return the error for a missing collective, with the framework's ``reason``."""
        accelerator = self.rank_context.accelerator
        device = "a CPU" if accelerator == "cpu" else accelerator
        return Unsupported(f"{self.case.framework} has no {operation} on {device}: {reason}")


class Transfers(Capability):
    """The framework copies arrays to the device and back as its users do."""

    LACKING: ClassVar[str] = "offers no plain copies of arrays here"

    @abstractmethod
    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` in one of DIRECTIONS.

        Repeated copies have the same target. ``pinned``: whether the host's memory is locked.
        ``result`` returns the copy as a numpy array. Not called where the device is the host."""


class PairTransfers(Capability):
    """One process copies arrays between any two devices of its node."""

    LACKING: ClassVar[str] = "cannot copy between two devices here"

    @abstractmethod
    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` between two devices of this
        node, given by local rank.

        Repeated copies have the same target. ``result`` returns the copy as a numpy array.
        :meth:`synchronize` waits for it. Not called where the devices are the host."""


class CommonCapabilities(MicroBenchmarks, Rounding, Numerics, Checkpointing):
    """Several devices, micro-benchmarks, comparison with the reference, and checkpoints."""

    def matmul_result(self, left: Any, right: Any) -> Any:
        return self.primitives().matmul_result(left, right)
