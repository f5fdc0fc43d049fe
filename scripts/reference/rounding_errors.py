"""Errors of outputs, gradients, updates and running statistics that rounding explains, against the
exact ones of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from harness.kinds.parity import OF_STATISTICS, UPDATES
from harness.measuring.verification.errors import relative

from reference.optimizers import OPTIMIZERS, update

Arrays = dict[str, Any]
_OF_STEPS = ("gradients", *UPDATES)


def of_outputs(outputs: Arrays, folder: Path) -> dict[str, float]:
    """Return the relative error of each of the rounded ``outputs``."""
    with np.load(folder / "outputs.npz") as exact:
        return {name: relative(array, exact[name]) for name, array in outputs.items()}


def of_steps(
    weights: Arrays,
    hyper: dict[str, Any],
    differentiate: Callable[[Arrays], Arrays],
    statistics: Callable[[Arrays], Arrays],
    folder: Path,
) -> dict[str, dict[str, float]]:
    """Return the norms of the errors of rounded gradients, and of the updates by these, by
    parameter; and of what each step adds to the running statistics, where there are ``statistics``.
    Changes ``weights``."""
    start, optimizer = dict(weights), OPTIMIZERS[hyper["optimizer"]](hyper)
    norms = {}
    for number, name in enumerate(UPDATES):
        if added := statistics(weights):
            exact = folder / f"statistics-biased-1-{number}-0.npz"
            norms[OF_STATISTICS[number]] = _distances(added.items(), exact)
        gradients = differentiate(weights)
        if not number:
            norms["gradients"] = _distances(gradients.items(), folder / "gradients-1.npz")
        update(weights, gradients, optimizer, hyper)
        changes = ((one, weights[one] - start[one]) for one in gradients)
        norms[name] = _distances(changes, folder / f"update-1-{number}.npz")
    return norms


def nothing_explained(folder: Path) -> dict[str, dict[str, float]]:
    """Return errors of zero, where rounding was not computed."""
    with np.load(folder / "outputs.npz") as exact:
        return {"outputs": dict.fromkeys(exact.files, 0.0), **{name: {} for name in _OF_STEPS}}


def _distances(arrays: Iterable[tuple[str, Any]], path: Path) -> dict[str, float]:
    """Return the norm of the difference of each array from that of a file."""
    with np.load(path) as exact:
        return {
            name: float(np.linalg.norm((array - exact[name]).ravel())) for name, array in arrays
        }
