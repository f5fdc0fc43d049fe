"""Sizes at which models are verified, from the shipped suites."""

from __future__ import annotations

from typing import Any

from framebench.cases.matrix import cases
from framebench.config.catalog import load_catalog
from framebench.config.suite import load_suite
from framebench.runs import verify
from reference import compute

from ..conftest import ROOT

CATALOG = load_catalog(ROOT)
#: Tokens of a model that no suite has.
USUAL = 128


def compared_at() -> list[tuple[str, int | None]]:
    """Return each model with its sequence lengths, None for images."""
    actual = set()
    for path in ROOT.glob("config/suites/*.yaml"):
        suite = load_suite(path.stem, CATALOG)
        actual |= {
            (case.model, case.sequence_length) for case in cases(suite, CATALOG) if case.is_step
        }
    named = {model for model, _ in actual}
    for name, model_config in CATALOG.models.items():
        if name not in named:
            actual.add((name, USUAL if model_config["sequence_lengths"] else None))
    return sorted(actual, key=str)


def config_at(model: str) -> dict[str, Any]:
    """Return the model config at the scale of its reference."""
    model_config = CATALOG.models[model]
    if verify.scale_of(model_config) == verify.FULL:
        return model_config
    return compute.reduced(model_config, verify.REDUCED)
