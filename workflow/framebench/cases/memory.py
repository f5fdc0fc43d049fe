"""Lower bound of the memory of a case, known before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core import precisions
from core.case import Case
from core.parallelism import layout_of

from ..config.catalog import Catalog

#: Arrays of the size of the weights that an optimizer keeps.
_MOMENTS = {"sgd": 1, "adamw": 2, "lamb": 2}


def why_too_large(case: Case, there: int, holder: str, catalog: Catalog, devices: int = 1) -> str:
    """Return why the weights of a case and what trains them do not fit, with the arithmetic; "" if
    they may fit.

    Activations, batch and framework come on top; a run would end as ``oom`` minutes later.
    ``there``: bytes for so many ``devices``, 0 if unknown; ``holder``: says whose they are.
    """
    arrays = _arrays(case, catalog)
    if arrays is None or not 0 < there < arrays.of_device * devices:
        return ""
    ways = f" / {arrays.devices} devices" if arrays.devices > 1 else ""
    several = f" x {devices} devices" if devices > 1 else ""
    return (
        f"{arrays.parameters:,} parameters x {arrays.each} bytes x {arrays.count} "
        f"({arrays.what}){ways}{several} take {arrays.of_device * devices / 2**30:.1f} GiB of "
        f"{holder} {there / 2**30:.1f} GiB"
    )


@dataclass(frozen=True)
class _Arrays:
    """Arrays of the size of the weights.

    ``each``: bytes of a value; ``count``: number of arrays; ``devices``: number of devices that
    share one copy; ``what``: the arrays as text."""

    parameters: int
    each: int
    count: int
    devices: int
    what: str

    @property
    def of_device(self) -> float:
        """Bytes on a device."""
        return self.parameters * self.each * self.count / self.devices


def _arrays(case: Case, catalog: Catalog) -> _Arrays | None:
    """Return the arrays that exist at once: weights, the optimizer's moments, and the gradients if
    all exist before the first update; None if unknown."""
    model_config = catalog.models.get(case.model, {})
    parameters = model_config.get("trainable_parameters")
    precision = precisions.known().get(case.precision)
    if not case.is_step or not parameters or precision is None:
        return None
    what = {"weights": 1}
    if case.mode == "train":
        hyper = model_config.get("hyperparameters", {})
        what["moments"] = _MOMENTS.get(hyper.get("optimizer"), 0)
        what["gradients"] = int(_all_gradients(case, hyper, catalog))
    copies = layout_of(case.parallelism, case.devices).data  # others shard one copy
    return _Arrays(
        parameters,
        precisions.BYTES.get(precision.storage, 0),
        sum(what.values()),
        case.devices // copies,
        ", ".join(name for name, count in what.items() if count),
    )


def _all_gradients(case: Case, hyper: dict[str, Any], catalog: Catalog) -> bool:
    """Return whether all gradients exist at once before the first weight update.

    Clipping needs the norm of all gradients. Eager execution ends the backward pass first. A graph
    or a compiler may update a weight earlier.
    """
    is_graph = catalog.frameworks[case.framework]["none_is"] == "graph"
    return "clip_global_norm" in hyper or (case.compiler == "none" and not is_graph)
