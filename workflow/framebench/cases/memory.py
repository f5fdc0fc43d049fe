"""What memory a case takes at least, whatever its batch: what is known before it runs."""

from __future__ import annotations

from typing import Any

from core import precisions
from core.case import Case
from core.parallelism import layout_of

from ..config.catalog import Catalog

#: Arrays of the size of the weights that an optimizer keeps.
_MOMENTS = {"sgd": 1, "adamw": 2, "lamb": 2}


def why_too_large(case: Case, there: int, catalog: Catalog) -> str:
    """Why the case cannot run on a node of which a run may hold ``there`` bytes, 0 where that is
    not known; "" where it may be able to. A run would tell it too, minutes later, as ``oom``."""
    least = least_bytes(case, catalog)
    if not 0 < there < least:
        return ""
    what = "weights and what trains them" if case.mode == "train" else "weights"
    return (
        f"its {what} alone take {least / 2**30:.1f} GiB of a node, a run may hold "
        f"{there / 2**30:.1f} GiB here"
    )


def least_bytes(case: Case, catalog: Catalog) -> int:
    """Of a node, in bytes: the weights of its devices and, in training, the moments of the
    optimizer, with the gradients where all of them are there at once. Activations, the batch and
    the framework itself come on top. 0 where the number of parameters is not known, and of what
    is no step."""
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
    """Whether no weight is updated before the last gradient is there: a norm is of all of them, and
    what runs operation by operation ends its backward pass first. A graph or a compiler may update
    a weight as soon as it can."""
    is_graph = catalog.frameworks[case.framework]["none_is"] == "graph"
    return "clip_global_norm" in hyper or (case.compiler == "none" and not is_graph)
