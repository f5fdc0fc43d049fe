"""Tables of nodes compared with each other and with a baseline: a row per node, and per figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...statistics.verdicts import CANNOT_TELL
from ...tables.columns import (
    NUMBER,
    P_VALUE,
    PERCENT,
    TEXT,
    THOUSANDTHS,
    VERDICT,
    WHOLE,
    Column,
    Form,
    Row,
    interval,
    interval_cells,
    shared,
)
from ...tables.measured import MEDIAN
from ...tables.table import Table
from .judging import JudgedFigure, JudgedNode


def of_nodes(nodes: Iterable[JudgedNode]) -> Iterator[Row]:
    """Yield a row per node, most urgent first."""
    for node in nodes:
        undecided = sum(entry.verdict == CANNOT_TELL for entry in node.judged)
        same = sum(entry.verdict == node.verdict for entry in node.judged)
        yield {
            "node": node.name,
            "hardware": node.hardware,
            _VERDICT.name: node.verdict,
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
                _VERDICT.name: entry.verdict,
                **_cells(entry),
                "reason": entry.reason,
                "flags": entry.figure.flags,
            }


def _cells(judged: JudgedFigure) -> dict[str, Any]:
    """Return the values of the columns in _FIGURE."""
    figure = judged.figure
    return {
        "figure": figure.name,
        "rule": judged.rule,
        "against": judged.side,
        MEDIAN.name: figure.middle,
        "reference": judged.reference,
        "unit": figure.unit,
        "of_reference": judged.ratio,
        **interval_cells("of_reference", judged.interval),
        "worse_by": judged.limit,
        "p_worse": judged.p_adjusted,
        "repeats": len(figure.values),
    }


_FOUR_DIGITS = Form(spec=".4g")
_NODE = (
    *shared("node"),
    Column(
        "hardware", TEXT, "label of its kind of machine, where nodes are of several",
    ),
)  # fmt: skip
_FIGURE = (
    Column(
        "figure", TEXT,
        "the figure that decided, or comes nearest to it: kind, metric and case",
    ),
    Column("rule", TEXT, "the rule that it was judged by"),
    Column(
        "against", TEXT,
        "`others` or `baseline`",
    ),
    MEDIAN,
    Column(
        "reference", NUMBER, "median of what it is held against, in `unit`", form=_FOUR_DIGITS
    ),
    *shared("unit"),
    Column(
        "of_reference", NUMBER, "median over reference, or the inverse where less is better",
        title="ratio", form=THOUSANDTHS,
    ),
    *interval("of_reference", "median over reference", form=THOUSANDTHS),
    Column("worse_by", NUMBER, "by how much it may be worse", title="may be worse by %",
           form=PERCENT),
    Column(
        "p_worse", NUMBER,
        "p-value that it is worse by more, adjusted for all figures of all nodes", form=P_VALUE,
    ),
    *shared("repeats"),
)  # fmt: skip
_WORDS = (
    "`slower`: shown to be worse by more than the rule allows; `failed`: has no figure where "
    "another node has one; `no difference shown`: all figures are shown to be within; `cannot tell`"
)
_VERDICT = Column("node_verdict", TEXT, _WORDS, title="verdict", form=VERDICT)
NODES = Table(
    name="nodes",
    title="Nodes",
    explanation="One row per node, bad nodes first, with its verdict and the figure that decided "
    "it. In at most 5 % of sets of healthy nodes (or the fraction that the rules state), a node "
    "is called slower. Healthy: worse in no figure by more than its rule allows.",
    columns=(
        *_NODE,
        _VERDICT,
        *_FIGURE,
        Column("telling_figures", WHOLE, "figures of the node with this verdict"),
        Column("undecided", WHOLE, "figures without a verdict"),
        Column("figures", WHOLE, "figures of the node that were judged"),
        *shared("reason", "flags"),
    ),
    keys=("node",),
    answers=("node_verdict", "figure", "of_reference"),
    axes=(),
)
FIGURES = Table(
    name="node_figures",
    title="Figures of nodes",
    explanation="Every figure of every node, compared with the others or a baseline.",
    columns=(*_NODE, _VERDICT, *_FIGURE, *shared("reason", "flags")),
    keys=("node", "figure", "against", "rule"),
    answers=("node_verdict", "of_reference"),
    axes=(),
)
