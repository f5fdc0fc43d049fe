"""Plots of other kinds of measurement than steps: for each metric a strip of every case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..tables import measured
from ..tables.results import CaseResult, CaseResults
from . import plots
from .plots import Look, Plot, Row

MAX_ROWS = 30


def panels(cases: CaseResults, look: Look) -> dict[str, list[Plot]]:
    """By kind, a panel for each of its metrics."""
    metrics: dict[tuple[str, str], list[CaseResult]] = defaultdict(list)
    for result in cases.values():
        if not result.case.is_step:
            metrics[result.case.mode, result.key.metric].append(result)
    found: dict[str, list[Plot]] = defaultdict(list)
    for (kind, _), results in sorted(metrics.items(), key=lambda item: item[0][0]):
        found[kind].append(_panel(kind, results, look))
    return found


def _panel(kind: str, results: Sequence[CaseResult], look: Look) -> Plot:
    label = measured.labels(results)
    first = results[0]
    name, unit = first.key.metric.replace("_", " "), first.unit
    shown = results[:MAX_ROWS]
    rows = [
        Row(
            label(result),
            measured.runs_in(result.case),
            result.values,
            "" if result.values else result.status,
            result.interval,
        )
        for result in shown
    ]
    left_out = len(results) - len(shown)
    return Plot(
        title=f"{name}, {unit} ({first.better} is better)",
        svg=plots.strips(rows, look, unit),
        narrow=plots.strips(rows, look, unit, narrow=True),
        description=f"{name} of {len(shown)} cases of {kind}: a dot for each repeat, a tick "
        "at the median. The numbers stand in the table.",
        caption="Each repeat is a dot, the tick and the number are the median."
        + (f" Left out: {left_out} of {len(results)} cases." if left_out else ""),
    )
