"""Suite whose models are replaced by a user's own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .kinds import BANDWIDTHS, INDEPENDENT
from .own_model import OwnModel
from .suite import Suite
from .suite_axes import Axes
from .validation import ConfigError


def of_own_model(suite: Suite, own_model: OwnModel) -> Suite:
    """Return the suite with a user's model instead of all models and frameworks.

    The suite keeps its axes and, of other benchmarks, the control of scaling and the bandwidth of
    memory. Raises ConfigError for a suite without axes.
    """
    if suite.axes is None:
        raise ConfigError(
            f"{suite.path}: axes: found none; allowed with model={own_model.source}: "
            "a suite with axes"
        )
    names: Axes = {"framework": [own_model.framework], "model": [own_model.name]}

    def replaced(block: Axes) -> Axes:
        return {axis: names.get(axis, _of_any_model(entry)) for axis, entry in block.items()}

    def kept(blocks: Sequence[Axes]) -> list[Axes]:
        of_framework = [own_model.framework]
        return [
            replaced(block)
            for block in blocks
            if own_model.framework in block.get("framework", of_framework)
        ]

    return replace(
        suite,
        axes={**replaced(suite.axes), **names},
        include=kept([*suite.include, *suite.then]),
        then=[],  # each combination is tried before any is repeated
        exclude=[entry for entry in suite.exclude if "model" not in entry],
        measurements={
            kind: replace(one, axes={name: names.get(name, own) for name, own in one.axes.items()})
            for kind, one in suite.measurements.items()
            if kind in (INDEPENDENT, *BANDWIDTHS)
        },
        own_model=own_model.name,
        gpu_suite=suite.gpu_suite and of_own_model(suite.gpu_suite, own_model),
    )


def _of_any_model(values: Any) -> Any:
    """Return the values of an axis; batches by model become the batches of all."""
    if not isinstance(values, dict):
        return values
    return list(dict.fromkeys(value for some in values.values() for value in some))
