"""Terminal lines, kept baseline and exit status of a node health check."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...commands.exit_status import NotPassed
from ...files.whole_files import write_together
from ...records import record_sets
from ...statistics.verdicts import CANNOT_TELL, SLOWER
from ...tables import frames, grouping
from . import figures, judging, tables
from .judging import FAILED, NAMED, JudgedFigure, JudgedNode
from .rules import Health

#: Exit statuses: a slow node, a failed one, and none that can be judged.
SLOW_NODE, FAILED_NODE, NOTHING = 3, 4, 5

#: File in ``tables`` with the repeats of all nodes that are not named.
BASELINE = "node_baseline.json"


def lines(nodes: Sequence[JudgedNode]) -> Iterator[str]:
    """Yield a line for each named node with the deciding figure, and the number of nodes."""
    named = [node for node in nodes if node.verdict in NAMED]
    for node in named:
        telling = node.telling
        assert telling is not None, "a node is named for a figure"
        figure = telling.figure
        found = telling.reason
        if figure.middle is not None and telling.reference is not None:
            found = f"{figure.middle:.4g} against {telling.reference:.4g} {figure.unit}".rstrip()
            found += f" of the {telling.side}, rule {telling.rule}"
        yield f"node {node.name}: {node.verdict}: {figure.name}: {found}"
    open_ones = sum(node.verdict == CANNOT_TELL for node in nodes)
    cannot = f", of {open_ones} it cannot be told" if open_ones else ""
    if nodes:
        yield f"{len(named)} of {len(nodes)} nodes named{cannot}"


def check(nodes: Sequence[JudgedNode], fail_on: float | None) -> None:
    """Raise NotPassed if there is no node or, with ``fail_on``, if a node is bad.
    ``fail_on``, a fraction: these fail, in this order: a node that is shown to be slower by more
    than that, a failed node, only undecided nodes."""
    if not nodes:
        raise NotPassed(NOTHING, "cannot tell: no run was asked for a node by its name")
    if fail_on is None:
        return
    slow = [node.name for node in nodes if _is_slow(node, fail_on)]
    if slow:
        raise NotPassed(SLOW_NODE, f"slow node: {_counted(slow, nodes, 'are slower')}")
    failed = [node.name for node in nodes if node.verdict == FAILED]
    if failed:
        raise NotPassed(FAILED_NODE, f"failed node: {_counted(failed, nodes, 'have failed')}")
    if all(node.verdict == CANNOT_TELL for node in nodes):
        raise NotPassed(NOTHING, f"cannot tell: of none of {len(nodes)} nodes it can be told")


def _is_slow(node: JudgedNode, fail_on: float) -> bool:
    """Return whether a node has a figure that is slower by more than that.
    Its rule's margin is at least that, or its whole interval lies below."""

    def is_beyond(figure: JudgedFigure) -> bool:
        below = figure.interval is not None and figure.interval[1] < 1 - fail_on
        return below or (figure.limit is not None and figure.limit >= fail_on)

    return any(figure.verdict == SLOWER and is_beyond(figure) for figure in node.judged)


def _counted(names: Sequence[str], nodes: Sequence[JudgedNode], what: str) -> str:
    return f"{len(names)} of {len(nodes)} nodes {what}: {', '.join(names)}"


def make(source: Path, results: Path, health: Health, fail_on: float | None) -> None:
    """Write ``tables/nodes.csv`` and related files below ``results`` from the records at
    ``source``. Prints the named nodes, then raises NotPassed if the check fails."""
    record_set = record_sets.load(source)
    for problem in record_set.problems:
        print(f"ignored: {problem.origin}: {problem.message}", file=sys.stderr)
    if not record_set.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    measured = figures.measured(grouping.group(record_set.runs, None))
    nodes = judging.judge(measured, health)
    folder = results / "tables"
    made = {
        tables.NODES: frames.frame(tables.NODES, tables.of_nodes(nodes)),
        tables.FIGURES: frames.frame(tables.FIGURES, tables.of_figures(nodes)),
    }
    baseline = judging.baseline_text(nodes, measured)
    kept = {folder / BASELINE: baseline} if baseline else {}
    write_together({**frames.files(made, folder), **kept})
    print("\n".join(lines(nodes)))
    print(f"table: {folder / 'nodes.csv'}\nbaseline of the healthy nodes: {folder / BASELINE}")
    check(nodes, fail_on)
