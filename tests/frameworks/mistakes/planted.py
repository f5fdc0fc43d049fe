"""Planted mistakes: changes of an adapter, and the computation that must show them."""

from __future__ import annotations

from typing import Any, NamedTuple

from core.parallelism import TENSOR

from ...planting import Change
from ..comparing import DROPOUT


class Computation(NamedTuple):
    """Computation that is compared with the reference: of the model config ``config_name``
    (``model_config-dropout``: with the model's own dropout), on ``ranks`` devices, with so many
    ``micro_steps`` of gradient accumulation. ``parallelism``: how the devices share a step.
    ``compiler``: "" for that of all comparisons of the framework."""

    mode: str = "train"
    precision: str = "fp32"
    ranks: int = 1
    config_name: str = "model_config"
    micro_steps: int = 1
    compiler: str = ""
    parallelism: str = "data"

    @property
    def parts(self) -> int:
        """Return the parts of a step: devices times micro-steps."""
        return self.ranks * self.micro_steps

    @property
    def takes_long(self) -> bool:
        """Return whether statistics are of many passes through layers that ranks share, each of
        which takes 20 ms. A test looks at the masks themselves."""
        return self.parallelism == TENSOR and self.config_name == DROPOUT


FP32_TRAINING = Computation()


class PlantedMistake:
    """A mistake in the adapter of the framework that its module is named after.

    ``about``: what is wrong; ``model``: name of the small reference that it is compared with;
    ``changes``: of the adapter; ``computation``: in which it is looked for, by its fields.
    ``missed``: why verification does not find it; "" if it must."""

    def __init__(
        self, about: str, model: str, *changes: Change, missed: str = "", **computation: Any
    ) -> None:
        self.about, self.model, self.changes, self.missed = about, model, changes, missed
        self.computation = Computation(**computation)


def other_operation(name: str, text: str) -> Change:
    """Return the change of an operation that both TensorFlows take from ``scripts/networks``, in
    the adapter's networks. ``text``: may call the right ones, by name in RIGHT."""
    line = "from networks.tensorflow_layers import OPERATIONS, padded\n"
    own = f'OPERATIONS = {{**RIGHT, "{name}": {text}}}\n'
    return Change("models/cnn.py", line, line.replace("OPERATIONS", "OPERATIONS as RIGHT") + own)
