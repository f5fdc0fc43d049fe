"""Plots of other kinds of measurement than steps: for each metric a strip of every case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..tables import measured
from ..tables.results import CaseResult, CaseResults
from . import plots
from .plots import Look, Plot, Row
from .selection import left_out

MAX_ROWS = 30


def panels(cases: CaseResults, look: Look, kind: str) -> list[Plot]:
    """A panel for each metric of a kind."""
    metrics: dict[str, list[CaseResult]] = defaultdict(list)
    for result in measured.by_kind(cases)[kind]:
        metrics[result.key.metric].append(result)
    return [_panel(kind, some, look) for some in metrics.values()]


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
    return Plot(
        title=f"{name}, {unit} ({first.better} is better)",
        svg=plots.strips(rows, look, unit),
        narrow=plots.strips(rows, look, unit, narrow=True),
        description=f"{name} of {len(shown)} cases of {kind}: a dot for each repeat, a tick "
        "at the median. The numbers stand in the table.",
        caption="Each repeat is a dot, the tick and the number are the median. "
        + left_out(len(shown), len(results), "cases"),
    )
