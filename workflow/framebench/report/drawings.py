"""Plots of a table, as its declaration names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ..tables.declared import scaling
from ..tables.table import Drawing, Inputs, Table
from . import panels
from .charts import (
    expectation_bars,
    learning_curves,
    loss_bars,
    measured_panels,
    memory_curves,
    phase_bars,
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
    "throughput": lambda of: panels.throughput(of.inputs.cases, of.look),
    "metrics": lambda of: measured_panels.panels(of.inputs.others, of.look, of.words),
    "ratios": lambda of: panels.ratios(of.frame, of.look, of.words),
    "scaling": lambda of: scaling_curves.panels(of.frame, of.look, scaling.KINDS[of.table.name]),
    "losses": lambda of: loss_bars.of_weak_scaling(of.frame),
    "suite_phases": lambda of: phase_bars.of_suite(of.frame),
    "run_phases": lambda of: phase_bars.of_cases(of.frame),
    "memory": lambda of: memory_curves.panels(of.frame, of.look),
    "roofline": lambda of: roofline_panels.panels(of.frame, of.look),
    "communication": lambda of: expectation_bars.of_communication(of.frame),
    "matmul_share": lambda of: expectation_bars.of_matmul_share(of.frame),
    "learning": lambda of: learning_curves.panels(of.inputs, of.look),
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
