"""Tables of nodes compared with each other and with a baseline: a row per node, and per figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...statistics.verdicts import CANNOT_TELL
from ...tables.columns import Row, interval_cells
from ...tables.table import tables_in
from .judging import JudgedFigure, JudgedNode

NODES, FIGURES = tables_in(Path(__file__).with_name("tables.yaml")).values()


def of_nodes(nodes: Iterable[JudgedNode]) -> Iterator[Row]:
    """Yield a row per node, most urgent first."""
    for node in nodes:
        undecided = sum(entry.verdict == CANNOT_TELL for entry in node.judged)
        same = sum(entry.verdict == node.verdict for entry in node.judged)
        yield {
            "node": node.name,
            "hardware": node.hardware,
            "node_verdict": node.verdict,
            **_cells(node.telling),
            "telling_figures": same,
            "undecided": undecided,
            "figures": len(node.judged),
            "reason": node.reason,
            "flags": node.telling.figure.flags,
        }


def of_figures(nodes: Iterable[JudgedNode]) -> Iterator[Row]:
    """Yield a row per figure of a node and side that it is compared with."""
    for node in nodes:
        for entry in node.judged:
            yield {
                "node": node.name,
                "hardware": node.hardware,
                "node_verdict": entry.verdict,
                **_cells(entry),
                "reason": entry.reason,
                "flags": entry.figure.flags,
            }


def _cells(judged: JudgedFigure) -> dict[str, Any]:
    """Return the values of the columns of a figure."""
    figure = judged.figure
    return {
        "figure": figure.name,
        "rule": judged.rule,
        "against": judged.side,
        "median": figure.middle,
        "reference": judged.reference,
        "unit": figure.unit,
        "of_reference": judged.ratio,
        **interval_cells("of_reference", judged.interval),
        "worse_by": judged.limit,
        "p_worse": judged.p_adjusted,
        "repeats": len(figure.values),
    }
