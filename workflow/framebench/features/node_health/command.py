"""Tables, terminal lines and exit status of a node health check."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...files.whole_files import write_together
from ...records import record_sets
from ...statistics.verdicts import CANNOT_TELL, SLOWER
from ...tables import frames
from ...tables.columns import interval_cells
from ...tables.results import group
from ...tables.table import tables_in
from . import judging
from .judging import FAILED, NAMED, JudgedFigure, JudgedNode, NodeMeasurement, NodeRules

NODES, FIGURES = tables_in(Path(__file__).with_name("tables.yaml")).values()
#: Exit statuses: a node is slow, a node failed, and no node can be judged.
SLOW_NODE, FAILED_NODE, NOTHING = 3, 4, 5


def lines(nodes: Sequence[JudgedNode]) -> Iterator[str]:
    """Yield a line for each named node with the deciding figure, and the number of nodes."""
    named = [node for node in nodes if node.verdict in NAMED]
    for node in named:
        telling, figure = node.telling, node.telling.figure
        found = telling.reason
        if figure.middle is not None and telling.reference is not None:
            found = f"{figure.middle:.4g} against {telling.reference:.4g} {figure.unit}".rstrip()
            found += f" of the {telling.side}, rule {telling.rule}"
        yield f"node {node.name}: {node.verdict}: {figure.name}: {found}"
    if nodes:
        yield f"{len(named)} of {len(nodes)} nodes named"


def check(nodes: Sequence[JudgedNode]) -> tuple[int, str]:
    """Return exit status and message, for a slow node, else for a failed one, else if none can be
    judged."""
    if not nodes:
        return NOTHING, "cannot tell: no run was requested for a named node"
    for verdict, status, what in ((SLOWER, SLOW_NODE, "slow"), (FAILED, FAILED_NODE, "failed")):
        if names := [node.name for node in nodes if node.verdict == verdict]:
            return status, f"{what}: {len(names)} of {len(nodes)}: {', '.join(names)}"
    if all(node.verdict == CANNOT_TELL for node in nodes):
        return NOTHING, f"cannot tell: none of {len(nodes)} nodes can be judged"
    return 0, ""


def make(source: Path, results: Path, rules: NodeRules, baseline: Path | None) -> int:
    """Write ``tables/nodes.csv`` and ``node_figures.csv`` below ``results`` from the records at
    ``source``. Prints the named nodes, and returns the exit status.
    ``baseline``: records of a day when the nodes were good."""
    kept = judging.baseline_of(_figures(baseline)) if baseline else None
    nodes = judging.judge(_figures(source), rules, kept)
    folder = results / "tables"
    made = {
        NODES: NODES.frame(_cells(node, node.telling) for node in nodes),
        FIGURES: FIGURES.frame(_cells(node, figure) for node in nodes for figure in node.judged),
    }
    write_together(frames.files(made, folder))
    print("\n".join(lines(nodes)))
    print(f"table: {folder / 'nodes.csv'}")
    status, message = check(nodes)
    if status:
        print(f"framebench: {message}", file=sys.stderr)
    return status


def _figures(source: Path) -> list[NodeMeasurement]:
    """Return the figures of nodes in the records at ``source``. Raises RecordsError for none."""
    record_set = record_sets.load(source)
    for problem in record_set.problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    if not record_set.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    return judging.measured(group(record_set.runs, None))


def _cells(node: JudgedNode, judged: JudgedFigure) -> dict[str, Any]:
    """Return the values of the columns of a figure of a node."""
    figure = judged.figure
    return {
        "node": node.name,
        "hardware": node.hardware,
        "node_verdict": judged.verdict,
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
        "reason": judged.reason,
        "flags": figure.flags,
    }
