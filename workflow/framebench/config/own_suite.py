"""Suite whose models are replaced by a user's own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core import axes

from .catalog import Catalog
from .kinds import BANDWIDTHS, INDEPENDENT, Measurement, measurement
from .own_model import OwnModel
from .suite import Suite
from .suite_axes import Axes
from .validation import ConfigError

#: Elements of an array that no cache of a GPU holds.
IN_MEMORY = str(2**26)


def of_own_model(suite: Suite, own_model: OwnModel, catalog: Catalog, gpus: bool = False) -> Suite:
    """Return the suite with a user's model instead of all models and frameworks.

    The suite keeps its axes and, of other benchmarks, the control of scaling and the bandwidth of
    memory, which a suite without variants gets if it has none: the model's roofline needs it.
    ``gpus``: the suite is one for GPUs. Raises ConfigError for a suite without axes, or with a
    variant for another source of the project's models.
    """
    if suite.axes is None:
        raise ConfigError(
            f"{suite.path}: axes: found none; allowed with model={own_model.source}: "
            "a suite with axes"
        )
    for name, variant in suite.variants.items():
        if variant.source:
            raise ConfigError(
                f"{suite.path}: variants.{name}.source: found {variant.source!r}; allowed with "
                f"model={own_model.source}: none, which only the project's own models have"
            )
    names: Axes = {"framework": [own_model.framework], "model": [own_model.name]}

    def replaced(block: Axes) -> Axes:
        return {axis: names.get(axis, _of_any_model(entry)) for axis, entry in block.items()}

    measurements = {
        kind: replace(one, axes={axis: names.get(axis, some) for axis, some in one.axes.items()})
        for kind, one in suite.measurements.items()
        if kind in (INDEPENDENT, *BANDWIDTHS)
    }
    if not suite.variants and not {*BANDWIDTHS} & {*measurements}:
        added = _bandwidth(suite, own_model, catalog, gpus)
        measurements[added.kind] = added

    def kept(blocks: Sequence[Axes]) -> list[Axes]:
        of_framework = [own_model.framework]
        return [
            replaced(block)
            for block in blocks
            if own_model.framework in block.get("framework", of_framework)
        ]

    return suite.model_copy(
        update={
            "axes": {**replaced(suite.axes), **names},
            "include": kept(suite.include),
            "then": kept(suite.then),
            "exclude": [entry for entry in suite.exclude if "model" not in entry],
            "measurements": measurements,
            "own_model": own_model.name,
            "gpu_suite": suite.gpu_suite
            and of_own_model(suite.gpu_suite, own_model, catalog, True),
        }
    )


def _bandwidth(suite: Suite, own_model: OwnModel, catalog: Catalog, gpus: bool) -> Measurement:
    """Return the benchmark of memory, on each number of devices that the suite has."""
    blocks = [suite.axes or {}, *suite.include, *suite.then]
    devices = dict.fromkeys(n for block in blocks for n in block.get("devices_per_node", ()))
    usual = {axis.name: [axis.default] for axis in axes.further()}
    chosen = {"nodes": [1], "devices_per_node": [*devices]}
    if not gpus:
        return measurement("memory", chosen, usual, {}, catalog, None)
    chosen |= {"framework": [own_model.framework], "precision": ["fp32"]}
    return measurement("elementwise", chosen, usual, {"elements": [IN_MEMORY]}, catalog, None)


def _of_any_model(values: Any) -> Any:
    """Return the values of an axis; batches by model become the batches of all."""
    if not isinstance(values, dict):
        return values
    return list(dict.fromkeys(value for some in values.values() for value in some))
