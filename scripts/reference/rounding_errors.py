"""Errors of outputs, losses, gradients, updates and running statistics that rounding explains,
against the exact ones of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.kinds.verification import LAST_RATE, LOSSES, OF_STATISTICS, STEPS, UPDATES
from harness.measuring.verification.errors import OF_TOKEN, relative, worst_token

from reference.optimizers import OPTIMIZERS, update

Arrays = dict[str, Any]
_OF_STEPS = (LOSSES, "gradients", *UPDATES)


def of_outputs(outputs: Arrays, folder: Path) -> dict[str, dict[str, float]]:
    """Return the relative error of each of the rounded ``outputs``, and of the worst token of those
    that have some for each."""
    errors: dict[str, dict[str, float]] = {"outputs": {}}
    with np.load(folder / "outputs.npz") as arrays:
        for name, array in outputs.items():
            exact = arrays[name]
            errors["outputs"][name] = relative(array, exact)
            if exact.ndim == 3:
                errors.setdefault(OF_TOKEN, {})[name], _ = worst_token(array, exact)
    return errors


def of_steps(
    weights: Arrays,
    hyper: dict[str, Any],
    losses: Sequence[float],
    differentiate: Callable[[Arrays], tuple[float, Arrays]],
    statistics: Callable[[Arrays], Arrays],
    folder: Path,
) -> dict[str, dict[str, float]]:
    """Return the norms of the errors of rounded gradients, and of the updates by these, by
    parameter; and of what each step adds to the running statistics, where there are ``statistics``;
    and the relative errors of the ``losses`` before each step and after the last. Changes
    ``weights``."""
    start, optimizer = dict(weights), OPTIMIZERS[hyper["optimizer"]](hyper)
    norms: dict[str, dict[str, float]] = {LOSSES: {}}
    largest = 0.0  # so far: what rounding did to the weights stays
    for number, right in enumerate(losses):
        loss, gradients = differentiate(weights)
        largest = max(largest, abs(loss - right) / abs(right))
        norms[LOSSES][str(number)] = largest
        if not number:
            norms["gradients"] = _distances(gradients.items(), folder / "gradients-1.npz")
        if number < len(UPDATES) and (added := statistics(weights)):
            exact = folder / f"statistics-biased-1-{number}-0.npz"
            norms[OF_STATISTICS[number]] = _distances(added.items(), exact)
        if number == STEPS - 1:
            optimizer.rate *= LAST_RATE
        update(weights, gradients, optimizer, hyper)
        if number < len(UPDATES):
            changes = ((gradient, weights[gradient] - start[gradient]) for gradient in gradients)
            norms[UPDATES[number]] = _distances(changes, folder / f"update-1-{number}.npz")
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
