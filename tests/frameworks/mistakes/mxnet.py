"""Mistakes in MXNet's adapter."""

from __future__ import annotations

from .planted import Change, PlantedMistake

MISTAKES = [
    PlantedMistake(
        "the sum over ranks",
        "basic residual, halving",
        Change("steps.py", "trainer.update(ranks)", "trainer.update(1)"),
        ranks=2,
    ),
]
