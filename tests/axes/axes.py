"""An axis from outside the project's folder, which needs nothing but this file."""

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
