"""Capabilities of frameworks for training on changing data: new batches, learning rates,
checkpoints.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Dict, List, Sequence

from harness.adapter import Capability


class BatchInput(Capability):
    """A step uses the batch and the learning rate that the adapter was given last."""

    LACKING: ClassVar[str] = "takes no batch and no learning rate but those it was built with"

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
    """Write numpy arrays to a file."""
    import numpy as np

    with open(path, "wb") as file:  # numpy appends a suffix to a name, but not to an open file
        np.savez(file, *arrays)


def load_arrays(path: str, count: int) -> List[Any]:
    """Return the arrays of :func:`save_arrays`. Raises ValueError where they are not ``count``, as
    in the file of another training."""
    import numpy as np

    with np.load(path) as kept:
        if len(kept.files) != count:
            raise ValueError(f"{path} has {len(kept.files)} arrays, the training {count}")
        return [kept[f"arr_{number}"] for number in range(count)]
