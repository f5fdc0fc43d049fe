"""Lower bound of the memory of a case, known before it runs."""

from __future__ import annotations

from typing import Any

from core import precisions
from core.case import Case
from core.parallelism import layout_of

from ..config.catalog import Catalog

#: Arrays of the size of the weights that an optimizer keeps.
_MOMENTS = {"sgd": 1, "adamw": 2, "lamb": 2}


def why_too_large(case: Case, there: int, catalog: Catalog) -> str:
    """Return why a case cannot run on a node, or "" if it may fit.

    ``there``: bytes that a run may use per node, 0 if unknown. A run would end as ``oom`` minutes
    later.
    """
    least = least_bytes(case, catalog)
    if not 0 < there < least:
        return ""
    what = "weights and what trains them" if case.mode == "train" else "weights"
    return (
        f"its {what} alone take {least / 2**30:.1f} GiB of a node, a run may hold "
        f"{there / 2**30:.1f} GiB here"
    )


def least_bytes(case: Case, catalog: Catalog) -> int:
    """Return the least bytes of a case per node: the weights of its devices and training state.

    The training state is the optimizer's moments, and the gradients if all exist at once.
    Activations, batch and framework come on top. Returns 0 for an unknown number of parameters and
    for benchmarks without steps.
    """
    facts = catalog.models.get(case.model, {})
    parameters = facts.get("trainable_parameters")
    precision = precisions.known().get(case.precision)
    if not case.is_step or not parameters or precision is None:
        return 0
    arrays = 1
    if case.mode == "train":
        hyper = facts.get("hyperparameters", {})
        arrays += _MOMENTS.get(hyper.get("optimizer"), 0)
        arrays += _all_gradients(case, hyper, catalog)
    copies = layout_of(case.parallelism, case.devices).data  # others shard one copy
    each = precisions.BYTES.get(precision.storage, 0)
    return int(parameters * each * arrays * copies // case.nodes)


def _all_gradients(case: Case, hyper: dict[str, Any], catalog: Catalog) -> bool:
    """Return whether all gradients exist at once before the first weight update.

    Clipping needs the norm of all gradients. Eager execution ends the backward pass first. A graph
    or a compiler may update a weight earlier.
    """
    is_graph = catalog.frameworks[case.framework]["none_is"] == "graph"
    return "clip_global_norm" in hyper or (case.compiler == "none" and not is_graph)
