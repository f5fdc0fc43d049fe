"""Make the plots that the declaration of a table names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from ..tables.table import Inputs, Table
from . import panels
from .charts import learning_curves, measured_panels, roofline_panels, scaling_curves
from .plots import Look, Plot

#: Function that draws a table from its rows and inputs. The text is the drawing's subject.
Drawer = Callable[[Table, pd.DataFrame, Inputs, Look, str], Sequence[Plot]]
#: Functions by name of the drawing.
DRAWERS: Mapping[str, Drawer] = {
    "throughput": lambda _, __, inputs, look, ___: panels.throughput(inputs.cases, look),
    "metrics": lambda _, __, inputs, look, kind: measured_panels.panels(inputs.others, look, kind),
    "ratios": lambda _, frame, __, look, title: panels.ratios(frame, look, title),
    "scaling": lambda table, frame, _, look, __: scaling_curves.panels(frame, look, table.title),
    "roofline": lambda _, frame, __, look, ___: roofline_panels.panels(frame, look),
    "learning": lambda _, __, inputs, look, ___: learning_curves.panels(inputs, look),
}


def draw_table(table: Table, frame: pd.DataFrame, inputs: Inputs, look: Look) -> list[Plot]:
    """Return the plots of a table, as its declaration names them."""
    if not table.drawing:
        return []
    return [*DRAWERS[table.drawing](table, frame, inputs, look, table.drawing_of)]
