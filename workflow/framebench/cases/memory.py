"""Lower bound of the memory of a case, known before it runs."""

from __future__ import annotations

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
    model_config = catalog.models.get(case.model, {})
    parameters = model_config.get("trainable_parameters")
    precision = precisions.known().get(case.precision)
    if not there or not case.is_step or not parameters or precision is None:
        return ""
    arrays = _arrays(case, model_config.get("hyperparameters", {}), catalog)
    each, count = precisions.BYTES.get(precision.storage, 0), sum(arrays.values())
    shards = case.devices // layout_of(case.parallelism, case.devices).data  # of one copy
    needed = parameters * each * count / shards * devices
    if there >= needed:
        return ""
    ways = f" / {shards} devices" if shards > 1 else ""
    several = f" x {devices} devices" if devices > 1 else ""
    what = ", ".join(name for name, number in arrays.items() if number)
    return (
        f"{parameters:,} parameters x {each} bytes x {count} ({what}){ways}{several} take "
        f"{needed / 2**30:.1f} GiB of {holder} {there / 2**30:.1f} GiB"
    )


def _arrays(case: Case, hyper: dict[str, object], catalog: Catalog) -> dict[str, int]:
    """Return the number of arrays of the size of the weights that exist at once, by kind.

    Gradients count where all exist before the first update: clipping needs the norm of all, and
    eager execution ends the backward pass first. A graph or a compiler may update a weight earlier.
    """
    if case.mode != "train":
        return {"weights": 1}
    is_eager = case.compiler == "none" and catalog.frameworks[case.framework]["none_is"] != "graph"
    moments = _MOMENTS.get(str(hyper.get("optimizer")), 0)
    gradients = int("clip_global_norm" in hyper or is_eager)
    return {"weights": 1, "moments": moments, "gradients": gradients}
