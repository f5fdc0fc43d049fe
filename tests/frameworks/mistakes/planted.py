"""What a planted mistake is."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """One change of an adapter: in a file below its folder, a text that stands there and its
    replacement."""

    file: str
    right: str
    wrong: str


class PlantedMistake:
    """A mistake in the adapter of the framework that its module is named after.

    ``about``: what is wrong; ``model``: name of the small reference that it is compared with;
    ``changes``: of the adapter. The comparison is that of ``mode``, ``precision``, ``ranks``
    devices, and of the model config ``facts`` (``facts-dropout``: with the model's own dropout).
    ``missed``: why verification does not find it; "" if it must."""

    def __init__(
        self,
        about: str,
        model: str,
        *changes: Change,
        mode: str = "train",
        precision: str = "fp32",
        ranks: int = 1,
        facts: str = "facts",
        missed: str = "",
    ) -> None:
        self.about, self.model, self.changes = about, model, changes
        self.mode, self.precision, self.ranks, self.facts = mode, precision, ranks, facts
        self.missed = missed
