"""Plots of a table, as its declaration names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ..tables.declared import scaling
from ..tables.table import Drawing, Inputs, Table
from . import panels
from .charts import (
    learning_curves,
    measured_panels,
    roofline_panels,
    scaling_curves,
)
from .plots import Look, Plot


@dataclass(frozen=True)
class DrawingInputs:
    """Inputs of a plot: the table, its rows, and the data that they were made from."""

    table: Table
    frame: pd.DataFrame
    inputs: Inputs
    look: Look
    words: str


#: Plotting function by name of the drawing.
DRAWERS: Mapping[str, Callable[[DrawingInputs], Sequence[Plot]]] = {
    "throughput": lambda drawing: panels.throughput(drawing.inputs.cases, drawing.look),
    "metrics": lambda drawing: measured_panels.panels(
        drawing.inputs.others, drawing.look, drawing.words
    ),
    "ratios": lambda drawing: panels.ratios(drawing.frame, drawing.look, drawing.words),
    "scaling": lambda drawing: scaling_curves.panels(
        drawing.frame, drawing.look, scaling.KINDS[drawing.table.name]
    ),
    "roofline": lambda drawing: roofline_panels.panels(drawing.frame, drawing.look),
    "learning": lambda drawing: learning_curves.panels(drawing.inputs, drawing.look),
}


def of_table(table: Table, frame: pd.DataFrame, inputs: Inputs, look: Look) -> list[Plot]:
    """Return the plots of a table, in the order of its declaration.

    Raises ValueError for an unknown drawing."""
    drawn: list[Plot] = []
    for drawing in table.drawings:
        drawer = _drawer(table, drawing)
        drawn += drawer(DrawingInputs(table, frame, inputs, look, drawing.words))
    return drawn


def _drawer(table: Table, drawing: Drawing) -> Callable[[DrawingInputs], Sequence[Plot]]:
    if drawing.name not in DRAWERS:
        allowed = ", ".join(DRAWERS)
        raise ValueError(f"table {table.name}: drawing: found {drawing.name!r}; allowed: {allowed}")
    return DRAWERS[drawing.name]
