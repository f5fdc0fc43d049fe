"""Mistakes in TensorFlow 1's adapter."""

from __future__ import annotations

from .planted import Change, PlantedMistake

MISTAKES = [
    PlantedMistake(
        "clipped before the all-reduce",
        "embedding",
        Change(
            "steps.py",
            '_clipped(gradients, model_config["hyperparameters"].get("clip_global_norm"))',
            'average(_clipped(local, model_config["hyperparameters"].get("clip_global_norm")))',
        ),
        ranks=2,
    ),
]
