"""Mistakes in JAX's adapter."""

from __future__ import annotations

from .planted import PlantedMistake

MISTAKES: list[PlantedMistake] = []
