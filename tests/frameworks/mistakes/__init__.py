"""Mistakes that verification must find, one module per framework.

``benchmarks/planted_mistakes.py`` plants all of them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from . import branches, generation, parallel, recurrent, stages
from .planted import PlantedMistake

FRAMEWORKS = (
    "jax",
    "megengine",
    "mindspore",
    "mxnet",
    "oneflow",
    "paddle",
    "pytorch",
    "tensorflow",
    "tensorflow1",
)


def of_framework(framework: str) -> Sequence[PlantedMistake]:
    """Return the mistakes in the adapter of ``framework``."""
    actual: Sequence[PlantedMistake] = importlib.import_module(f"{__name__}.{framework}").MISTAKES
    shared = [*branches.MISTAKES[framework], *stages.MISTAKES[framework]]
    some = [
        mistake
        for module in (generation, parallel, recurrent)
        for mistake in module.MISTAKES.get(framework, ())
    ]
    return [*actual, *shared, *some]
