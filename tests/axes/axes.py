"""An axis defined outside the project's folder, by this file alone."""

from __future__ import annotations

from core.axes import Axis, choice

AXES = [
    Axis(
        "batch_order",
        "order in which the samples of a batch are computed",
        choice("given", "reversed"),
        default="given",
        applies_to=("train",),
        title="order of the batch",
    )
]
