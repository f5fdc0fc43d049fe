"""Capabilities of frameworks for training on changing data: new batches, learning rates,
checkpoints.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import copy
import importlib
from abc import abstractmethod
from typing import Any, ClassVar, Dict, Mapping, Sequence, Tuple

from harness.adapter import Capability, Unsupported
from harness.loader import Loading

#: Shape and dtype of each array of a batch, by its name.
Form = Dict[str, Tuple[Tuple[int, ...], str]]


def form_of(batch: Mapping[str, Any]) -> Form:
    """Return shape and dtype of each numpy array in a batch."""
    return {name: (tuple(array.shape), str(array.dtype)) for name, array in batch.items()}


def check_form(batch: Mapping[str, Any], form: Form) -> None:
    """Raise ValueError where ``batch`` has another form, with the first difference."""
    actual = form_of(batch)
    if set(actual) != set(form):
        raise ValueError(
            f"a batch of {sorted(actual)}, where the model was built with {sorted(form)}"
        )
    for name, (shape, dtype) in form.items():
        if actual[name] != (shape, dtype):
            raise ValueError(f"{name} is {actual[name][1]} {actual[name][0]}, not {dtype} {shape}")


class BatchInput(Capability):
    """A step computes with the batch that was fed last."""

    LACKING: ClassVar[str] = "takes no other batch than the one its model was built with"
    #: Form of the batch of :meth:`build`, set by :meth:`note_form`.
    _form: Form

    def note_form(self, batch: Mapping[str, Any]) -> None:
        """Note the form of the batch; called by :meth:`build`."""
        self._form = form_of(batch)

    def feed(self, batch: Dict[str, Any]) -> None:
        """Copy ``batch`` to the device, where the next :meth:`step` computes with it.

        It has the same numpy arrays by name, shape and dtype as in :meth:`build`, and may be
        overwritten when this returns. Raises ValueError otherwise. Of a loader that decodes on the
        GPU, it may have a :class:`harness.loader.DeviceArray`, which is not copied."""
        check_form(batch, self._form)
        self.put(self.take_device_arrays(batch) if isinstance(self, Loading) else batch)

    @abstractmethod
    def put(self, batch: Dict[str, Any]) -> None:
        """Copy a batch of the right form to the device, as :meth:`feed` does. What is a tensor of
        the framework already lies there."""


class LearningRateSchedule(BatchInput):
    """The learning rate can change from step to step."""

    LACKING: ClassVar[str] = "trains with a constant learning rate only"

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


class Checkpointing(LearningRateSchedule):
    """Another process can continue a training exactly; each rank has a file of its own."""

    LACKING: ClassVar[str] = "does not continue a training of another process"
    #: True if checkpoints keep the state of random numbers, which dropout uses.
    KEEPS_RANDOM: ClassVar[bool] = True

    def require_resumable(self) -> None:
        """Raise :class:`harness.adapter.Unsupported` for a case whose training would not continue
        exactly."""
        name, hyper = self.case.framework, self.model_config.get("hyperparameters", {})
        dropped = [key for key, value in hyper.items() if "dropout" in key and value]
        if dropped and not self.KEEPS_RANDOM:
            raise Unsupported(
                f"{name} keeps no state of its random numbers: dropout masks would differ "
                "after a checkpoint"
            )

    def training_parts(self) -> Sequence[Any]:
        """Return what ``save`` and ``load`` of the module ``checkpoints`` take after the path.

        The module lies in the framework's folder."""
        raise NotImplementedError

    def save_training(self, path: str) -> None:
        """Write all that decides the next steps to ``path``, a file or folder that does not exist
        yet.

        It has weights and running statistics, the optimizer's state, the loss scale, and the state
        of random numbers."""
        self._checkpoints.save(path, *self.training_parts())

    def load_training(self, path: str) -> None:
        """Restore the state after :meth:`build` of the same case.

        The next step is, bit by bit, the one that would have followed :meth:`save_training`."""
        self._checkpoints.load(path, *self.training_parts())

    @property
    def _checkpoints(self) -> Any:
        package = type(self).__module__.rpartition(".")[0]
        return importlib.import_module(f"{package}.checkpoints")
