"""Planted mistakes: changes of an adapter, and the computation that must show them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...planting import Change


class Computation(NamedTuple):
    """Computation that is compared with the reference: of the model config ``facts``
    (``facts-dropout``: with the model's own dropout), on ``ranks`` devices, with so many
    ``micro_steps`` of gradient accumulation.
    ``compiler``: "" for that of all comparisons of the framework."""

    mode: str = "train"
    precision: str = "fp32"
    ranks: int = 1
    facts: str = "facts"
    micro_steps: int = 1
    compiler: str = ""

    @property
    def parts(self) -> int:
        """Return the batches whose gradients are averaged."""
        return self.ranks * self.micro_steps


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
