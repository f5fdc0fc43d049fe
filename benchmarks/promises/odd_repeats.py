"""Outliers and second modes among normal repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import shape

from .row import PromiseRow


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the false alarms of outliers and of second modes."""
    for count in (6, 7, 10, 20):
        sets = np.random.default_rng(1).normal(100, 2, (draws, count)).tolist()
        apart = float(np.mean([bool(shape.outliers(values)) for values in sets]))
        two = float(np.mean([shape.modes(values) is not None for values in sets]))
        for what, value in (("an outlier", apart), ("two modes", two)):
            promise = f"{what} among {count} repeats"
            yield PromiseRow(promise, "normal", value, draws, 0, shape.SIGNIFICANCE)
