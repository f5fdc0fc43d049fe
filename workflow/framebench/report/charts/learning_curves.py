"""Learning curves by epoch: held-out scores and training losses, one thin line per seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ...tables import measured
from ...tables.declared import converge
from ...tables.formatting import number
from ...tables.results import CaseResult
from ...tables.table import Inputs
from .. import line_charts
from ..parts import Parts
from ..plots import Look, Plot
from ..selection import axes_of_other, left_out, spread
from ..svg import MUTED

MAX_PANELS = 4
MAX_LINES = 8
#: Most tooltips of a drawing. If there are more, epochs are skipped; the last of a line is kept.
MAX_POINTS = 300


#: Curves of one case: seed, and value by epoch.
SeedCurves = line_charts.ChartLine[tuple[int, Sequence[float | None]]]


def panels(inputs: Inputs, look: Look) -> list[Plot]:
    """Return plots of scores and losses for each model, task and target."""
    grouped: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
    for result in converge.results(inputs):
        for curve in converge.curves(result)[:1]:
            grouped[result.case.model, curve.task, curve.score, curve.target].append(result)
    drawn: list[Plot] = []
    for (model, task, score, target), results in list(grouped.items())[:MAX_PANELS]:
        aim = "without a target" if target is None else f"to {target:g}"
        title = f"{model}, {task}, {aim}"
        drawn.append(_panel(f"{score} by epoch: {title}", score, results, look, target=target))
        drawn.append(_panel(f"Loss of training by epoch: {title}", "", results, look))
    return drawn


def _panel(
    title: str, score: str, results: Sequence[CaseResult], look: Look, target: float | None = None
) -> Plot:
    label = measured.labels(results)
    chosen = spread(list(results), lambda result: result.case.framework, MAX_LINES)
    lines = [
        SeedCurves(
            label(result),
            measured.runs_in(result.case),
            [
                (curve.seed, curve.scores if score else curve.losses)
                for curve in converge.curves(result)
            ],
            axes_of_other(result.key.row),
        )
        for result in chosen
    ]
    seeds = sum(len(line.points) for line in lines)
    what = f"{score} of held-out data" if score else "mean loss of the steps of an epoch"
    return Plot(
        title=title[:1].upper() + title[1:],
        svg=draw(lines, look, score, target),
        description=f"{what} by epoch: {seeds} trainings of {len(lines)} cases. The table "
        "shows how they ended.",
        caption=f"The {what}, a line for each seed."
        + (" Grey is the target. " if target is not None else " ")
        + left_out(len(lines), len(results), "cases"),
    )


def draw(lines: Sequence[SeedCurves], look: Look, score: str, target: float | None) -> Markup:
    """Return learning curves as SVG.

    ``score``: name of the score; "" for losses, which have a logarithmic axis."""
    points = sum(len(values) for line in lines for _, values in line.points)
    every = -(-points // MAX_POINTS)

    def one(axes: Axes, line: SeedCurves, style: line_charts.Style, parts: Parts) -> None:
        for at, (seed, values) in enumerate(line.points):
            present = [(epoch, value) for epoch, value in enumerate(values, 1) if value is not None]
            axes.plot(
                [epoch for epoch, _ in present], [value for _, value in present],
                markersize=3, linewidth=1, alpha=0.75, label=None if at else line.label, **style,
            )  # fmt: skip
            for epoch, value in present:
                if epoch % every == 0 or epoch == len(values):
                    said = f"{line.label}, seed {seed}, epoch {epoch}: {number(value)}"
                    parts.point(style["gid"], axes, (epoch, value), said)

    def finish(axes: Axes) -> None:
        if target is not None:
            axes.axhline(target, color=MUTED, linewidth=1, zorder=0)
        if not score:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(score or "loss (logarithmic axis)")

    return line_charts.draw(lines, look, one, finish)
