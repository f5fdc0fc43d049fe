"""What a framework brings that computes with one batch after the other: new data for each step, and
the rate at which it learns from them.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Dict, Mapping, Tuple

from harness.adapter import Capability, Unsupported

#: Shape and dtype of each array of a batch, by its name.
Form = Dict[str, Tuple[Tuple[int, ...], str]]


def form_of(batch: Mapping[str, Any]) -> Form:
    """That of a batch of numpy arrays."""
    return {name: (tuple(array.shape), str(array.dtype)) for name, array in batch.items()}


def check_form(batch: Mapping[str, Any], form: Form) -> None:
    """Raises ValueError where ``batch`` has another form, with the first difference."""
    found = form_of(batch)
    if set(found) != set(form):
        raise ValueError(
            f"a batch of {sorted(found)}, where the model was built with {sorted(form)}"
        )
    for name, (shape, dtype) in form.items():
        if found[name] != (shape, dtype):
            raise ValueError(f"{name} is {found[name][1]} {found[name][0]}, not {dtype} {shape}")


class BatchInput(Capability):
    """A step computes with the batch that was fed last."""

    LACKING: ClassVar[str] = "takes no other batch than that which its model was built with"
    #: Of the batch of :meth:`build`, which notes it by :meth:`note_form`.
    _form: Form

    def note_form(self, batch: Mapping[str, Any]) -> None:
        """Called by :meth:`build`, with its batch."""
        self._form = form_of(batch)

    def feed(self, batch: Dict[str, Any]) -> None:
        """Copy ``batch`` to the device, in the place of that of :meth:`build` or of the last call:
        the next :meth:`step` computes with it. It is of the same numpy arrays by name, shape and
        dtype, which may be overwritten when this returns. Raises ValueError where it is not."""
        check_form(batch, self._form)
        self.put(batch)

    @abstractmethod
    def put(self, batch: Dict[str, Any]) -> None:
        """As :meth:`feed`, for a batch of the right form."""


class LearningRateSchedule(BatchInput):
    """The learning rate changes from step to step."""

    LACKING: ClassVar[str] = "trains with one learning rate alone"

    @abstractmethod
    def set_learning_rate(self, rate: float) -> None:
        """That of the next :meth:`step` and all behind it, until it is set again; the optimizer
        keeps what it has. Raises :class:`harness.adapter.Unsupported` where the step that was
        built cannot take another."""

    def inference_adapter(self) -> Any:
        """An adapter of the same model in this process, started as this one is, and not built: for
        inference, with running statistics and without dropout. Called before :meth:`build`, which
        seeds random numbers anew. Raises :class:`harness.adapter.Unsupported` where two models
        cannot be beside each other."""
        other = copy.copy(self)
        other.case = self.case._replace(mode="inference", accumulation=1)
        return other


class Checkpointing(LearningRateSchedule):
    """A training is taken up in another process where it ended in this one; of several ranks each
    has a file of its own."""

    LACKING: ClassVar[str] = "does not take up a training where another process left it"
    #: Whether the state of random numbers is kept, which dropout draws its masks by.
    KEEPS_RANDOM: ClassVar[bool] = True

    def require_resumable(self) -> None:
        """Raises :class:`harness.adapter.Unsupported` for a case whose training would not go on as
        it was."""
        name, hyper = self.case.framework, self.model_config.get("hyperparameters", {})
        dropped = [key for key, value in hyper.items() if "dropout" in key and value]
        if dropped and not self.KEEPS_RANDOM:
            raise Unsupported(
                f"{name} keeps no state of its random numbers: behind a checkpoint the masks of "
                "dropout would be others"
            )

    @abstractmethod
    def save_training(self, path: str) -> None:
        """Write to ``path``, a file or a folder that is not there yet, all that decides the steps
        to come: weights and running statistics, the optimizer's state, the scale of the loss, and
        that of random numbers."""

    @abstractmethod
    def load_training(self, path: str) -> None:
        """Behind :meth:`build` of the same case: the next step is, bit by bit, that which would
        have come behind :meth:`save_training`."""
