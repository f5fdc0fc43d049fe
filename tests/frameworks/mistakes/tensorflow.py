"""Mistakes in TensorFlow 2's adapter."""

from __future__ import annotations

from .planted import Change, PlantedMistake

MISTAKES = [
    PlantedMistake(
        "averaged twice",
        "basic residual, halving",
        Change(
            "steps.py",
            "optimizer.apply(gradients, variables)",
            "optimizer.apply([gradient / ranks for gradient in gradients], variables)",
        ),
        ranks=2,
    ),
]
